"""The contract of pipeline conversation stores: states only advance, one run at a time, uncertainties with their
resolution.
"""

import asyncio

from agent.core.models import JsonObject, Usage
from agent.core.subagent_result import Uncertainty
from gateway.features.documents.engine.ingest.source_store import SourceStore
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from gateway.features.pipeline_builder.engine.records import Conversation
from tests.contract.journal_stores import Clock

Pair = tuple[BuilderConversationStore, BuilderConversationStore]
"""Two store objects on the same database, as two processes have them."""
PIPELINE: JsonObject = {"nodes": [], "edges": [], "template": "so \x00"}
WEB = ConnectorInput(source_type="web", source_identifier="https://site.example/")
BLOCKS = Uncertainty(severity="blocking", message="half of it fails \x00", context={"n": 1})
NOTABLE = Uncertainty(severity="notable", message="two languages")


class BuilderContract:
    """Subclasses provide `stores`, `sources` and `clock`."""

    async def reread(self, stores: Pair, conversation: Conversation) -> Conversation:
        """The conversation as the other process sees it."""
        found = await stores[1].get(conversation.id, conversation.owner)
        assert found is not None
        return found

    async def test_a_conversation_is_kept_and_anothers_is_not_there(
        self, stores: Pair, sources: SourceStore, clock: Clock
    ) -> None:
        source = await sources.add("anna", WEB)
        made = await stores[0].add("anna", source_id=source.id)
        assert (made.status, made.source_id, made.created) == ("active", source.id, clock.now)
        assert await stores[1].get(made.id, "anna") == made
        assert await stores[1].get(made.id, "bert") is None
        assert await stores[1].get("conv\x00", "anna") is None
        assert await stores[1].list_newest("bert") == []

    async def test_one_may_begin_with_what_another_came_to(self, stores: Pair) -> None:
        known: JsonObject = {"total_files": 3}
        made = await stores[0].add("anna", pipeline=PIPELINE, analysis=known, tainted=True)
        found = await self.reread(stores, made)
        assert (found.analysis, found.validation, found.tainted, found.status) == (known, None, True, "active")
        assert found.pipeline is not None
        assert found.pipeline["nodes"] == []

    async def test_a_chat_has_one_conversation_an_owner(self, stores: Pair) -> None:
        made = await asyncio.gather(*(stores[n % 2].add("anna", chat_id="chat \x00") for n in range(4)))
        assert len({one.id for one in made}) == 1
        other = await stores[0].add("bert", chat_id="chat \x00")
        assert other.id != made[0].id
        assert (await stores[1].get("chat \x00", "anna") or other).id == made[0].id

    async def test_of_two_runs_that_claim_at_once_one_may(self, stores: Pair) -> None:
        made = await stores[0].add("anna")
        got = await asyncio.gather(*(stores[n % 2].claim(made, f"run_{n}") for n in range(6)))
        assert got.count(True) == 1
        winner = f"run_{got.index(True)}"
        assert [one.run_id for one in await stores[1].list_unfinished()] == [winner]
        await stores[0].release_claim(made, "run_other")
        assert not await stores[1].claim(made, "run_x")
        spent = Usage(model_calls=1, prompt_tokens=5, completion_tokens=2, cost_usd=0.5)
        settled = await asyncio.gather(
            *(store.complete_run(made, winner, ("x",), spent) for store in (*stores, *stores))
        )
        assert settled.count(True) == 1, "what a run used is counted once"
        found = await self.reread(stores, made)
        assert (found.run_id, found.turns, found.asked, found.usage) == (None, 1, ("x",), spent)
        assert await stores[0].claim(made, "run_y")
        assert await stores[0].complete_run(made, "run_y", ("x", "y"), Usage(prompt_tokens=1))
        assert (await self.reread(stores, made)).usage.cost_usd == 0.5
        assert (await stores[1].sum_usage("anna")).prompt_tokens == 6
        assert await stores[1].sum_usage("bert") == Usage()

    async def test_states_only_go_forward(self, stores: Pair, clock: Clock) -> None:
        one, other = stores
        made = await one.add("anna")
        assert not await one.apply(made, "c", {}), "there is no pipeline"
        clock.now += 1
        assert await one.set_pipeline(made, PIPELINE, validated=False)
        assert (await self.reread(stores, made)).updated == clock.now
        assert await one.apply(made, "c", {"collection": "c", "force": True})
        assert [found.id for found in await other.list_half_applied()] == [made.id]
        await one.set_job(made, "job_1")
        assert await other.list_half_applied() == []
        assert not await other.abandon(made)
        assert not await other.apply(made, "d", {})
        assert not await other.set_pipeline(made, {}, validated=False)
        assert not await other.set_analysis(made, {})
        assert not await other.claim(made, "run_1")
        found = await self.reread(stores, made)
        assert (found.status, found.applied, found.job_id) == ("applied", {"collection": "c", "force": True}, "job_1")
        second = await one.add("anna")
        assert await one.abandon(second)
        assert not await other.abandon(second)
        assert (await self.reread(stores, second)).status == "abandoned"

    async def test_another_pipeline_is_not_validated(self, stores: Pair) -> None:
        made = await stores[0].add("anna")
        await stores[0].set_validation(made, {"of": "x"})
        await stores[0].set_pipeline(made, PIPELINE, validated=True)
        assert (await self.reread(stores, made)).validation == {"of": "x"}
        await stores[0].set_pipeline(made, PIPELINE, validated=False)
        assert (await self.reread(stores, made)).validation is None

    async def test_a_doubt_is_told_once_and_settled_when_nobody_has_it_any_more(self, stores: Pair) -> None:
        one, other = stores
        made = await one.add("anna")
        origin, how = "pipeline_validator", "pipeline_adjusted"
        new = await one.record_uncertainties(made, origin, (BLOCKS, NOTABLE), settled_by=how)  # type: ignore[arg-type]
        assert len(new) == 2
        assert await other.record_uncertainties(made, origin, (BLOCKS, NOTABLE), settled_by=how) == []  # type: ignore[arg-type]
        assert [doubt.message[:4] for doubt in await other.list_blocking(made)] == ["half"]
        await other.record_uncertainties(made, origin, (NOTABLE,), settled_by=how)  # type: ignore[arg-type]
        assert await one.list_blocking(made) == []
        settled = next(doubt for doubt in await one.list_uncertainties(made) if doubt.severity == "blocking")
        assert (settled.resolved, settled.resolved_by, settled.resolver) == (True, how, origin)
        again = await one.record_uncertainties(made, origin, (BLOCKS,), settled_by=how)  # type: ignore[arg-type]
        assert [doubt.is_blocking for doubt in again] == [True], "it is back"

    async def test_a_persons_word_on_a_doubt_stands(self, stores: Pair) -> None:
        one, other = stores
        made = await one.add("anna")
        (doubt,) = await one.record_uncertainties(made, "source_analyzer", (BLOCKS,), settled_by="analysed_again")
        resolved = await asyncio.gather(
            *(store.resolve(doubt, how="user_confirmed", resolver="anna", note="fine") for store in stores)
        )
        assert len([one for one in resolved if one is not None]) == 1
        assert await other.record_uncertainties(made, "source_analyzer", (BLOCKS,), settled_by="analysed_again") == []
        assert await other.list_blocking(made) == []
        (kept,) = await other.list_uncertainties(made)
        assert (kept.resolved_by, kept.resolver, kept.note, kept.context) == (
            "user_confirmed",
            "anna",
            "fine",
            {"n": 1},
        )

    async def test_a_source_that_is_removed_leaves_its_conversations(self, stores: Pair, sources: SourceStore) -> None:
        source = await sources.add("anna", WEB)
        assert await sources.add("anna", WEB) == source, "the same source is one source"
        made = await stores[0].add("anna", source_id=source.id)
        await sources.remove(source.id, "anna")
        assert (await self.reread(stores, made)).source_id is None

    async def test_a_source_that_is_registered_twice_at_once_is_one(self, sources: SourceStore) -> None:
        made = await asyncio.gather(*(sources.add("anna", WEB) for _ in range(5)))
        assert {source.id for source in made} == {made[0].id}
        assert await sources.list("anna") == [made[0]]
        assert (await sources.add("bert", WEB)).id != made[0].id

    async def test_what_is_over_is_archived_in_time(self, stores: Pair, clock: Clock) -> None:
        one, other = stores
        active, over = await one.add("anna"), await one.add("anna")
        await one.abandon(over)
        assert await other.archive(clock.now) == []
        clock.now += 100
        assert await other.archive(clock.now) == [over.id]
        assert await one.archive(clock.now) == []
        assert [found.id for found in await one.list_newest("anna")] == [active.id]
        assert [found.id for found in await one.list_newest("anna", archived=True)] == [over.id]

    async def test_conversations_come_newest_first_by_pages(self, stores: Pair, clock: Clock) -> None:
        for number in range(7):
            clock.now += number % 2  # some at the same moment
            await stores[0].add("anna")
        seen: list[str] = []
        page = await stores[1].list_newest("anna", limit=3)
        while page:
            seen += [one.id for one in page]
            page = await stores[1].list_newest("anna", limit=3, before=page[-1])
        assert len(seen) == len(set(seen)) == 7
        assert len(await stores[1].list_newest("anna", status="active", limit=50)) == 7
        assert await stores[1].list_newest("anna", status="applied") == []
