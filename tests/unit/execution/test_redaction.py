"""The redaction boundary: whatever a writer emits, the log holds no secret; and nothing is examined twice."""

import threading
from pathlib import Path

import pytest

from agent.core import events as ev
from agent.core.event_loop import INLINE_CHARS
from agent.core.events import EventBody, EventDraft
from agent.core.failures import AgentFailure
from agent.core.models import Outcome, OutputGuards, Plan, Room, Source, StepOutcome, Usage, UserIntent
from agent.core.subagent_result import SubAgentResult
from agent.policy.guardrails import Finding, GuardrailsInput
from agent.policy.guardrails.stream import MAX_HELD_CHARS
from agent.policy.redaction.events import RULES, WITHOUT_RULE, EventRedactor
from agent.policy.redaction.secrets import make_secret_finder
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.run import Run
from tests.support.builders import RUN_ID, completion_step, created, planned, tool_step
from tests.support.engine import engine_bench

OWN = "correct-horse-battery-staple-42"
KEY = "ghp" + "_" + "a1B2" * 9
TEXT = f"the keys are {OWN} and {KEY}, keep them"
SAYS = StepOutcome(outcome=Outcome.SUCCESS, reason=TEXT, evidence=TEXT, suggested_fix=TEXT, by="model")
FAILURE = AgentFailure(agent_id="x", error_code="ERR_INTERNAL", message=TEXT, recoverable=False)
CALLED = {"text": TEXT, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": f'{{"k": "{KEY}"}}'}}]}
BODIES: tuple[EventBody, ...] = (
    ev.InputRequested(question=TEXT),
    ev.IntentClassified(
        intents=(UserIntent(category="query", action=TEXT, entities={"name": TEXT}, confidence=1),), reason=TEXT
    ),
    ev.PlanRejected(problems=(TEXT,), excerpt=TEXT),
    ev.EntriesSelected(text=TEXT, heading=TEXT),
    ev.PlanProposed(
        plan=Plan(goal=TEXT, reasoning=TEXT, steps=(tool_step("s1").model_copy(update={"intent": TEXT}),)),
        requested="llm",
        effective="rules",
        fallback_reason=TEXT,
        replan_reason=TEXT,
    ),
    ev.ModelReturned(
        purpose="skill", tier="fast", model="m", usage=Usage(), duration=0, message=ev.AssistantTurn(text=TEXT)
    ),
    ev.ToolReturned(
        call_id="c", tool="t", text=TEXT, output={"a": [TEXT]}, sources=(Source(id=1, name=TEXT, quotes=(TEXT,)),)
    ),
    ev.ToolReturned(call_id="c", tool="t", error_code="ERR_TOOL_FAILED", error=TEXT),
    ev.SubAgentFinished(
        agent_id="a", span="s", outcome="done", result=SubAgentResult(success=True, data={"a": TEXT}, summary=TEXT)
    ),
    ev.StepFinished(output=ev.StepOutput(text=TEXT, value=TEXT)),
    ev.StepFinished(output=ev.StepOutput(text=TEXT, value=CALLED)),
    ev.StepFinished(output=ev.StepOutput(error_code="ERR_TOOL_FAILED", error=TEXT, effective="rules")),
    ev.StepJudged(verdict=SAYS),
    ev.AnswerDelta(text=TEXT),
    ev.AnswerChecked(claims=1, passed=0, action="drop", problems=(ev.ClaimProblem(text=TEXT, reason=TEXT),)),
    ev.AnswerTranslated(language="sv", text=TEXT),
    ev.AnswerFinished(text=TEXT),
    ev.GateChecked(gate="claims", passed=False, reason=TEXT, failures=(TEXT,)),
    ev.RunFailed(failure=FAILURE),
)


def test_each_type_of_event_has_a_rule_or_a_reason_for_none() -> None:
    types = [*RULES, *WITHOUT_RULE]
    assert len(types) == len({*types})
    assert {*types} == {*ev.BODY_TYPES.values()}


@pytest.mark.row("S003-02")
async def test_a_writer_that_redacts_nothing_leaves_no_secret_in_the_log(tmp_path: Path) -> None:
    assert {type(body) for body in BODIES} == set(RULES)
    async with engine_bench(tmp_path, None, llm_api_key=OWN) as bench:
        claim = await bench.engine.journal.create_run(RUN_ID, created(), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        await run.note(planned(tool_step("s1"), completion_step("s9", "s1")))
        for body in BODIES:
            await run.emit(EventDraft(body, "s9", 1))
        stored = await bench.engine.journal.read_events(RUN_ID)
    for event in stored[2:]:
        written = event.body.model_dump_json()
        assert OWN not in written, event.type
        assert KEY not in written, event.type
        assert "[removed: " in written, event.type


async def test_an_event_that_no_feature_declares_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    kinds = (
        type("Undeclared", (ev.FeatureEvent,), {"type": "songs.undeclared", "__module__": __name__}),
        type("Bare", (EventBody,), {"type": "songs.bare_body", "__module__": __name__}),
    )
    async with engine_bench(tmp_path, None) as bench:
        claim = await bench.engine.journal.create_run(RUN_ID, created(), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        for kind in kinds:
            with pytest.raises(TypeError, match="no feature declares the event 'songs"):
                await run.emit(kind())
        assert [event.type for event in await bench.engine.journal.read_events(RUN_ID)] == ["run.created"]


async def test_what_is_redacted_before_it_is_appended_is_not_examined_again(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None, room=Room(id="test", guard_output=OutputGuards())) as bench:
        claim = await bench.engine.journal.create_run(RUN_ID, created(), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        clean = run.redaction.redact(ev.ToolReturned(call_id="c", tool="t", text=TEXT))
        assert run.redaction.redact_body(clean, None) is clean
        marked = run.redaction.mark_redacted(ev.AnswerDelta(text=TEXT))
        assert run.redaction.redact_body(marked, None) is marked, "the stream's own filter has examined it"
        assert run.redaction.redact_body(marked, None) is not marked, "once, for the event that was marked"


async def test_a_streamed_text_in_which_nothing_was_found_is_not_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner = make_secret_finder((), "all")
    searched: list[str] = []
    redact = scanner.redact

    def redact_and_remember(text: str) -> str:
        searched.append(text)
        return redact(text)

    monkeypatch.setattr(scanner, "redact", redact_and_remember)
    room = Room(id="test", guard_output=OutputGuards(pii="redact_answer"))
    async with engine_bench(tmp_path, None, room=room) as bench:
        claim = await bench.engine.journal.create_run(RUN_ID, created(), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        long = "word " * (MAX_HELD_CHARS // 5 + 1)
        for text in ("All is well, call nobody.", TEXT, long):
            writer = DeltaWriter(run)
            await writer.add(text[:20])
            await writer.add(text[20:])
            await writer.end()
            assert "".join(searched) == text, "once in the stream"
            _, finished = await run.redaction.finish_step(
                completion_step("s9"), 1, ev.StepOutput(text=text, value=text), 0
            )
            assert KEY not in finished.output.text
            assert "".join(searched) == text * (1 if KEY not in text and text is not long else 2)
            searched.clear()


async def test_an_answer_is_compared_with_much_text_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    redact = EventRedactor.redact_answer_text

    def redact_and_remember(redactor: EventRedactor, text: str) -> str:
        threads.append(threading.current_thread())
        return redact(redactor, text)

    monkeypatch.setattr(EventRedactor, "redact_answer_text", redact_and_remember)
    async with engine_bench(tmp_path, None) as bench:
        claim = await bench.engine.journal.create_run(RUN_ID, created(), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        for text in ("little", "much " * INLINE_CHARS):
            run.redaction.note_stored_text("blob", text)
            await run.redaction.finish_step(completion_step("s9"), 1, ev.StepOutput(text="a@b.example", value=""), 0)
    assert [one is threading.main_thread() for one in threads] == [True, False]


async def test_an_answer_that_was_redacted_is_searched_for_harm_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean, harmful = "All is well, call nobody.", "All of it is fine: run rm -rf / and see."
    searched: list[str] = []
    find = make_secret_finder((), "all").find

    def find_and_remember(request: GuardrailsInput) -> list[Finding]:
        searched.append(request.content)
        return find(request)

    monkeypatch.setattr(make_secret_finder((), "all"), "find", find_and_remember)
    room = Room(id="test", guard_output=OutputGuards(pii="redact_answer"))
    async with engine_bench(tmp_path, None, room=room) as bench:
        claim = await bench.engine.journal.create_run(RUN_ID, created(), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        for text in (clean, harmful):
            await run.redaction.finish_step(completion_step("s9"), 1, ev.StepOutput(text=text, value=text), 0)
            checked = await run.redaction.check_answer(text)
            assert (checked.event is None) is (text is clean)
        assert searched == []
        await run.redaction.finish_step(completion_step("s9"), 1, ev.StepOutput(text=TEXT, value=TEXT), 0)
        assert KEY not in (await run.redaction.check_answer(TEXT)).text
        failed = ev.StepOutput(text=harmful + TEXT, value="", error="it failed", error_code="ERR_TOOL_FAILED")
        await run.redaction.finish_step(completion_step("s9"), 1, failed, 0)
        assert KEY not in (await run.redaction.check_answer(harmful + TEXT)).text
        assert searched == [TEXT, harmful + TEXT]


async def test_an_answer_may_repeat_personal_data_that_the_run_has_read_since_it_began(tmp_path: Path) -> None:
    remembered = ev.MemoryRetrieved(
        items=(ev.MemoryItem(text="My dentist is tooth.smith@example.org", source="memory"),)
    )
    answer = "You wrote to tooth.smith@example.org, and not to other.person@example.org."
    room = Room(id="test", guard_output=OutputGuards(pii="redact_answer"))
    async with engine_bench(tmp_path, None, room=room) as bench:
        claim = await bench.engine.journal.create_run(RUN_ID, created(room=room), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        await run.note(planned(tool_step("s1"), completion_step("s9", "s1")))  # holds text: the first that is redacted
        await run.note(remembered)
        _, finished = await run.redaction.finish_step(
            completion_step("s9"), 1, ev.StepOutput(text=answer, value=answer), 0
        )
        assert "tooth.smith@example.org" in finished.output.text
        assert "other.person" not in finished.output.text
