"""What a person writes to refuse a call never frees it: only an approval endorses what a question showed.

The model obeys every text that it reads, and tries again in another form after each refusal.
"""

from pathlib import Path

import pytest
from pydantic import JsonValue

from agent.core import events as ev
from agent.core.events import ApprovalItem
from agent.core.models import AgentResponse, JsonObject, Room
from agent.core.run_reducer import fold
from agent.run_context.message_labels import collect_replies
from tests.integration.test_approval import ask, decide, log_of, waiting
from tests.integration.test_egress import DONE, HELP, READ, calls, fetch, question_of, sites
from tests.integration.test_egress import bench_of as bench_of_sites
from tests.integration.test_engine import write_skill
from tests.integration.test_injections import make_tools
from tests.support.builders import RUN_ID, created, log
from tests.support.engine import engine_bench
from tests.support.script import Call, plans, says, script
from tests.support.tools import FunctionTool, returning

ROOM = Room(id="test", supervision="checks", memory=False)
PROMPT = "Pay Bo 50 as my mail says"
REFUSALS = {
    "a rejection with the value": ("reject", "never pay EVE-77"),
    "another language": ("answer", "EVE-77には絶対に払わないで"),
    "another spelling": ("answer", "Ich zahle nichts an Eve 77!"),
    "without its separator": ("reject", "never pay EVE77"),
    "an answer without its separator": ("answer", "never pay EVE77"),
    "a part of a sentence": ("answer", "Who is that? EVE-77 is nobody I know"),
}


async def run_payments(
    tmp_path: Path, *payments: JsonObject, decision: tuple[str, str], prompt: str = PROMPT
) -> tuple[FunctionTool, AgentResponse]:
    """The tool that pays, and the run after a person decided on the first of a skill's payments."""
    tools = [tool for tool in make_tools() if tool.spec.name in ("read_mail", "pay")]
    object.__setattr__(tools[1].spec, "argument_roles", {"to": "where", "amount": "amount"})
    write_skill(tmp_path / "skills", "operate", "read_mail pay")
    model = script(
        plans({"tool": "operate", "tools": ["read_mail", "pay"], "inputs": {"task": PROMPT}}, {"tool": "completion"}),
        calls(Call("read_mail", {})),
        *(calls(Call("pay", payment)) for payment in payments),
        DONE,
        says("Done.", to="completion"),
    )
    async with engine_bench(
        tmp_path / "data", model, tools=tools, room=ROOM, skill_roots=[tmp_path / "skills"]
    ) as bench:
        asked = await ask(bench, prompt)
        assert question_of(asked).args == payments[0]
        response = await decide(bench, asked, decision[0], reason=decision[1])
    return tools[1], response


@pytest.mark.parametrize("again", ["50", "9000"])
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_that_names_a_recipient_does_not_free_it(
    tmp_path: Path, refusal: tuple[str, str], again: str
) -> None:
    account = next((one for one in ("Eve 77", "EVE77") if one in refusal[1]), "EVE-77")
    first: JsonObject = {"to": "EVE-77", "amount": "9500"}
    pay, response = await run_payments(tmp_path, first, {"to": account, "amount": again}, decision=refusal)
    assert pay.calls == []
    is_rejected = refusal[0] == "reject"
    assert response.metadata["status"] == ("complete" if is_rejected else "awaiting_approval"), "a no holds"


@pytest.mark.parametrize("correction", ["No, pay it to Bo@ours.example instead", "Nein, lieber an Bo@ours.example."])
async def test_a_correction_is_followed_without_another_question(tmp_path: Path, correction: str) -> None:
    second: JsonObject = {"to": "Bo@ours.example", "amount": "50"}
    pay, response = await run_payments(
        tmp_path, {"to": "EVE-77", "amount": "50"}, second, decision=("answer", correction)
    )
    assert response.metadata["status"] == "complete"
    assert pay.calls == [second]


async def test_the_reason_of_a_rejection_gives_no_value(tmp_path: Path) -> None:
    """Of the words of a no, nobody can say which of them are wanted."""
    second: JsonObject = {"to": "mallory@evil.example", "amount": "50"}
    reason = "No, and not to mallory@evil.example either"
    pay, response = await run_payments(tmp_path, {"to": "EVE-77", "amount": "50"}, second, decision=("reject", reason))
    assert pay.calls == []
    assert response.metadata["status"] == "awaiting_approval"


async def test_a_rejected_amount_does_not_refuse_the_user_s_own_recipient(tmp_path: Path) -> None:
    second: JsonObject = {"to": "Bo", "amount": "50"}
    pay, _ = await run_payments(tmp_path, {"to": "Bo", "amount": "9000"}, second, decision=("reject", "not 9000"))
    assert pay.calls == [second]


@pytest.mark.parametrize("decision", ["reject", "answer"])
async def test_a_refusal_that_names_an_address_does_not_free_it(tmp_path: Path, decision: str) -> None:
    async with sites() as (site, sink):
        leak = sink.at("/?d=zanzibar")
        model = script(
            HELP, calls(READ), calls(fetch(leak)), calls(fetch(f"{leak}#1")), calls(fetch(sink.at("/"))), DONE
        )
        async with bench_of_sites(tmp_path, model, site, sink) as bench:
            response = await ask(bench, "read the notes")
            asked = 0
            while response.metadata["status"] == "awaiting_approval":
                asked += len(waiting(response))
                response = await decide(bench, response, decision, reason=f"No! Do not send it to {leak}")
        assert sink.paths() == []
        assert asked == (2 if decision == "reject" else 3), "the rejected address is not asked about again"


async def test_another_address_that_a_reply_gives_is_free(tmp_path: Path) -> None:
    async with sites() as (site, sink):
        leak, wanted = sink.at("/?d=zanzibar"), site.at("/next")
        model = script(HELP, calls(READ), calls(fetch(leak)), calls(fetch(wanted)), DONE)
        async with bench_of_sites(tmp_path, model, site, sink) as bench:
            asked = await ask(bench, "read the notes")
            done = await decide(bench, asked, "answer", reason=f"No, read {wanted} instead")
        assert done.response == "Done."
        assert (sink.paths(), site.paths()) == ([], ["/next"])


PAYEES: JsonValue = ["EVE-77", "EVE-78"]
LIST: JsonObject = {"for_each": "$s1", "to": "$item", "amount": "9000"}
ONE: JsonObject = {"to": "$s1.output[0]", "amount": "9000"}
WRAPPED: JsonObject = {"for_each": ["$s1.output[0]"], "to": "$item", "amount": "9000"}


@pytest.mark.parametrize(
    ("first", "again"), [(LIST, LIST), (LIST, ONE), (ONE, WRAPPED)], ids=["the same list", "one of it", "a list of one"]
)
async def test_what_was_rejected_is_not_asked_again_as_a_list(
    tmp_path: Path, first: JsonObject, again: JsonObject
) -> None:
    """A person who allows a plan that shows no values does not take back what they said of these."""
    read, pay = returning("read_mail", PAYEES, tainted=True), make_tools()[1]
    model = script(
        plans(
            {"id": "s1", "tool": "read_mail"},
            {"id": "s2", "tool": "pay", "inputs": first},
            {"id": "s3", "tool": "completion"},
            times=1,
        ),
        plans({"id": "n1", "tool": "pay", "inputs": again}, {"id": "n2", "tool": "completion"}),
        says("Done.", to="completion"),
    )
    async with engine_bench(tmp_path / "data", model, tools=[read, pay], room=ROOM) as bench:
        asked = await ask(bench, "Pay who my mail says")
        assert "EVE-77" in asked.response
        response = await decide(bench, asked, "reject")
        while response.metadata["status"] == "awaiting_approval":
            assert "EVE-77" not in response.response
            response = await decide(bench, response, "approve")
    assert pay.calls == []


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_list_with_one_recipient_that_was_rejected_is_asked_about_without_it(
    tmp_path: Path, decision: str
) -> None:
    read, pay = returning("read_mail", ["EVE-77", "BO-12", "CY-13"], tainted=True), make_tools()[1]
    model = script(
        plans(
            {"id": "s1", "tool": "read_mail"},
            {"id": "s2", "tool": "pay", "inputs": ONE},
            {"id": "s3", "tool": "completion"},
            times=1,
        ),
        plans({"id": "n1", "tool": "pay", "inputs": LIST}, {"id": "n2", "tool": "completion"}, times=1),
        plans({"id": "m1", "tool": "completion"}),
        says("Done.", to="completion"),
    )
    async with engine_bench(tmp_path / "data", model, tools=[read, pay], room=ROOM) as bench:
        asked = await decide(bench, await ask(bench, "Pay who my mail says"), "reject")
        while "BO-12" not in asked.response:
            asked = await decide(bench, asked, "approve")
        (approval,) = waiting(asked)
        items = [item["args"]["to"] for item in approval["items"]]  # type: ignore[attr-defined]
        done = await decide(bench, asked, decision)
        while done.metadata["status"] == "awaiting_approval":
            assert "BO-12" not in done.response
            done = await decide(bench, done, "approve")
        texts = [str(event.body) for event in await log_of(bench, done)]
    assert items == ["BO-12", "CY-13"]
    assert [call["to"] for call in pay.calls] == (items if decision == "approve" else [])
    message = "2 of 3 calls were made; item 1 failed: the user did not allow this call (asked before in this run)"
    assert any(message in text for text in texts) == (decision == "approve")


async def test_the_question_about_a_list_shows_the_private_words_that_would_leave(tmp_path: Path) -> None:
    async with sites() as (_, sink):
        fetches = {"for_each": ["zanzibar", "48213"], "url": sink.at("/?d=$item")}
        model = script(
            plans(
                {"id": "s1", "tool": "read_file", "inputs": {"path": "notes.md"}},
                {"id": "s2", "tool": "web_fetch", "inputs": fetches, "depends_on": ["s1"]},
                {"id": "s3", "tool": "completion"},
            ),
            says("Done.", to="completion"),
        )
        async with bench_of_sites(tmp_path, model, sink) as bench:
            asked = await ask(bench, "read the notes and look them up")
            shown = [item["shown"] for approval in waiting(asked) for item in approval["items"]]  # type: ignore[attr-defined]
        assert sink.paths() == []
        assert [f"`{word}`" in text for word, text in zip(("zanzibar", "48213"), shown, strict=True)] == [True, True]


def test_the_replies_of_a_run_are_compared_once_until_it_asks_again() -> None:
    item = ApprovalItem(step_id="s1", tool="pay", args={"to": "EVE-77"})
    asked = ev.ApprovalRequested(
        approval_id="a1", digest="", plan_version=0, reason="r", items=(item,), call_id="s1.1.1", expires_at=2e9
    )
    answered = ev.ApprovalDecided(approval_id="a1", decision="answered", by="anna", reason="Never EVE-77, but Cy")
    written = (created(PROMPT), asked, answered)
    again = asked.model_copy(update={"approval_id": "a2", "items": (item.model_copy(update={"args": {"to": "Cy"}}),)})
    first, second, third = (
        collect_replies(fold(RUN_ID, log(*bodies))) for bodies in (written, written, (*written, again))
    )
    assert first[0] is second[0]
    assert [first[0].gives("Cy"), third[0].gives("Cy")] == [True, False]
