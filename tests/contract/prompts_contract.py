"""What the prompt library promises on every store."""

import asyncio

import pytest

from agent.core.errors import NotFoundError
from agent.storage.audit import StoredAuditLog
from gateway.features.studio.engine.errors import ValidationError, VersionConflictError
from gateway.features.studio.engine.prompt import Prompt, PromptChange
from gateway.features.studio.engine.prompt_library import COLUMN_FIELDS, MAX_VERSIONS, PromptLibrary

Pair = tuple[PromptLibrary, PromptLibrary, StoredAuditLog]


class LabelledPrompt(Prompt):
    """A prompt with one field more."""

    label: str = ""


class LabelChange(PromptChange):
    """The field as a person saves it."""

    label: str | None = None


class PromptsContract:
    """The contract. `libraries` are two on one store, as two processes have them, with its audit record."""

    async def test_a_prompt_is_saved_listed_shown_and_removed(self, libraries: Pair) -> None:
        one, other, _ = libraries
        saved = await one.save_prompt(
            "anna", "brief", PromptChange(text="Be brief.", description="short answers"), by="anna"
        )
        assert (saved.version, saved.by) == (1, "anna")
        assert [prompt.name for prompt in await other.list_prompts("anna")] == ["brief"]
        assert (await other.get_prompt("anna", "brief")).text == "Be brief."
        assert await other.remove_prompt("anna", "brief", by="anna") == 1
        assert await one.list_prompts("anna") == []
        with pytest.raises(NotFoundError):
            await one.get_prompt("anna", "brief")

    async def test_each_change_is_a_version_and_what_is_equal_is_not(self, libraries: Pair) -> None:
        one, other, _ = libraries
        await one.save_prompt("anna", "brief", PromptChange(text="First.", description="about"), by="anna")
        second = await other.save_prompt("anna", "brief", PromptChange(text="Second."), by="anna")
        assert (second.version, second.description) == (2, "about")
        assert (await one.save_prompt("anna", "brief", PromptChange(text="Second."), by="anna")).version == 2
        assert [prompt.text for prompt in await one.list_versions("anna", "brief")] == ["Second.", "First."]
        assert (await one.get_prompt("anna", "brief", 1)).text == "First."
        with pytest.raises(NotFoundError, match="has no version 9; it has 2, 1"):
            await one.get_prompt("anna", "brief", 9)

    async def test_prompts_of_others_do_not_exist(self, libraries: Pair) -> None:
        one, other, _ = libraries
        await one.save_prompt("anna", "brief", PromptChange(text="Annas."), by="anna")
        with pytest.raises(NotFoundError, match="known prompts: none"):
            await other.get_prompt("bob", "brief")
        with pytest.raises(NotFoundError):
            await other.remove_prompt("bob", "brief", by="bob")
        assert (await other.save_prompt("bob", "brief", PromptChange(text="Bobs."), by="bob")).version == 1
        assert (await one.get_prompt("anna", "brief")).text == "Annas."

    async def test_of_two_who_change_one_version_one_is_told(self, libraries: Pair) -> None:
        one, other, _ = libraries
        await one.save_prompt("anna", "brief", PromptChange(text="First."), by="anna")
        results = await asyncio.gather(
            *(
                who.save_prompt("anna", "brief", PromptChange(text=f"Text {n}"), by="x", version=1)
                for n, who in enumerate([one, other] * 4)
            ),
            return_exceptions=True,
        )
        refused = [result for result in results if isinstance(result, VersionConflictError)]
        assert (len(results) - len(refused), len(refused)) == (1, 7), results
        assert (await one.get_prompt("anna", "brief")).version == 2
        with pytest.raises(VersionConflictError):
            await one.save_prompt("anna", "brief", PromptChange(text="x"), by="anna", version=0)

    @pytest.mark.parametrize(
        ("name", "text", "stage"),
        [
            ("", "x", "identifier"),
            ("../x", "x", "identifier"),
            ("Two Words", "x", "identifier"),
            ("日本", "x", "identifier"),
            ("x" * 65, "x", "identifier"),
            ("x\ud800", "x", "identifier"),
            ("x", "", "check_config"),
            ("x", " \n", "check_config"),
            ("x", "y" * 50_001, "check_config"),
            ("x", "\ud800", "check_config"),
            ("x", "null \x00", "check_config"),
        ],
    )
    async def test_what_cannot_be_saved_is_refused_with_its_stage(
        self, libraries: Pair, name: str, text: str, stage: str
    ) -> None:
        with pytest.raises(ValidationError) as refused:
            await libraries[0].save_prompt("anna", name, PromptChange(text=text), by="anna")
        assert refused.value.stage == stage
        assert await libraries[0].list_prompts("anna") == []

    @pytest.mark.parametrize("name", ["x\ud800", "x\x00", "", "' OR 1=1 --", "x" * 100_000])
    async def test_a_name_of_any_kind_is_only_not_found(self, libraries: Pair, name: str) -> None:
        with pytest.raises(NotFoundError):
            await libraries[0].get_prompt("anna", name)

    async def test_the_oldest_versions_are_dropped(self, libraries: Pair) -> None:
        for number in range(MAX_VERSIONS + 3):
            await libraries[0].save_prompt("anna", "brief", PromptChange(text=f"Text {number}"), by="anna")
        versions = [prompt.version for prompt in await libraries[0].list_versions("anna", "brief")]
        assert (len(versions), versions[0], versions[-1]) == (MAX_VERSIONS, MAX_VERSIONS + 3, 4)

    async def test_a_further_field_is_kept_without_a_column(
        self, libraries: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, other, _ = libraries
        await one.save_prompt("anna", "brief", PromptChange(text="Be brief."), by="anna")
        monkeypatch.setattr("gateway.features.studio.engine.prompt_library.Prompt", LabelledPrompt)
        saved = await one.save_prompt("anna", "brief", LabelChange(text="Be brief.", label="style"), by="anna")
        assert saved == LabelledPrompt(name="brief", version=2, text="Be brief.", by="anna", at=saved.at, label="style")
        again = await other.save_prompt("anna", "brief", LabelChange(text="Be brief."), by="bob")
        assert again == saved, "None keeps the earlier label"
        monkeypatch.undo()
        assert (await other.get_prompt("anna", "brief")).version == 2, "an older version of the gateway leaves it out"
        assert set(Prompt.model_fields) - {"from_outside"} == COLUMN_FIELDS

    async def test_a_text_from_outside_is_marked_until_a_person_saves_another(self, libraries: Pair) -> None:
        one, other, _ = libraries
        for by, change, is_outside in (
            ("anna (run r1)", PromptChange(text="A page.", description="a page", from_outside=True), True),
            ("anna", PromptChange(text="Be brief."), True),  # the description is still the page's
            ("anna", PromptChange(text="Be brief.", description="mine"), False),
        ):
            await one.save_prompt("anna", "brief", change, by=by)
            assert (await other.get_prompt("anna", "brief")).from_outside == is_outside, change

    async def test_what_a_run_saved_before_there_was_a_mark_may_be_from_outside(self, libraries: Pair) -> None:
        one, other, _ = libraries
        await one.save_prompt("anna", "by-run", PromptChange(text="A page."), by="anna (run r1)")
        await one.save_prompt("anna", "by-hand", PromptChange(text="Mine."), by="anna")
        await one._statements.write("UPDATE prompts SET fields = '{}'")
        marks = {prompt.name: prompt.from_outside for prompt in await other.list_prompts("anna")}
        assert marks == {"by-run": True, "by-hand": False}

    async def test_changes_are_in_the_audit_record(self, libraries: Pair) -> None:
        one, _, audit = libraries
        await one.save_prompt("anna", "brief", PromptChange(text="Be brief."), by="anna (key 1)")
        await one.remove_prompt("anna", "brief", by="anna (key 1)")
        entries = await audit.list_entries(action="prompt")
        assert [(entry.action, entry.principal, entry.target) for entry in entries] == [
            ("prompt.remove", "anna (key 1)", "brief"),
            ("prompt.save", "anna (key 1)", "brief"),
        ]
