"""Collects the facts that `agent.policy.guardrails.egress` decides by, from a run's log, and applies its decisions."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import JsonValue

from agent.core.errors import SkillUnknownError, ToolDeniedError
from agent.core.events import AnswerFinished, Event, StepOutput, ToolCalled, ToolReturned
from agent.core.json_schema import get_properties
from agent.core.models import JsonObject, PlanStep
from agent.core.run_reducer import fold
from agent.core.run_state import AttemptState, CallState, RunState
from agent.policy.approval import is_plan_approved
from agent.policy.guardrails.chosen_values import (
    ChosenValues,
    find_chosen_values,
    list_chosen_links,
    list_chosen_values,
)
from agent.policy.guardrails.egress import (
    EgressFacts,
    EgressFinding,
    ReadText,
    find_egress,
    iter_address_keys,
    judge_redirect,
    list_repeated_links,
)
from agent.policy.guardrails.message_labels import split_attachments
from agent.policy.guardrails.run_links import split_messages
from agent.run_context.calls import CallSite
from agent.run_context.message_labels import collect_replies
from agent.run_context.outputs import load_output, to_step_output
from agent.run_context.run import Run
from agent.tools import ToolSpec
from agent.tools.catalogue import get_server_name, is_foreign
from agent.tools.declared_arguments import collect_arguments, iter_nested_schemas
from agent.tools.extracted_fields import EXTRACT

_LINKS = ""
"""The group of the links that a run follows; the others have the names of their servers."""
_SCHEDULE = "schedule"
"""What the gateway adds to the metadata of a schedule's run. A model may have made up the schedule's name."""
SKILL_FILE_TOOL = "read_skill_file"
"""Reads files that the operator installed."""


async def find_egress_problem(
    run: Run, spec: ToolSpec, args: JsonObject, site: CallSite, nested: Sequence[ReadText] = ()
) -> EgressFinding | None:
    """The reason why a person must allow a call of a tool that reads over the network, or None if nobody must.

    `nested` is what a tool has read within the same call, which no log holds.
    """
    facts = await collect_facts(run, site, nested)
    if spec.read_claim:  # a server that is not trusted may have its own words back, also in others
        reads = (replace(one, is_private=one.is_private and one.server != spec.read_claim) for one in facts.reads)
        facts = replace(facts, reads=tuple(reads))
    is_open_world = spec.is_open_world or bool(spec.read_claim)
    finding = await asyncio.to_thread(
        find_egress,
        args,
        facts,
        where_args=spec.where_args,
        is_open_world=is_open_world,
        server=_get_server(spec),
        is_trusted_server=spec.is_trusted_server,
        fixed_values=tuple(_iter_fixed_values(spec.input_schema)),
        declared_args=collect_arguments(spec.input_schema)[0],
    )
    finding = finding or await _find_chosen_links(run, spec, args, site, facts)
    if finding is not None or spec.is_trusted_server:
        return finding
    leaving = args if is_open_world else {name: args[name] for name in args.keys() & frozenset(spec.where_args)}
    return await _find_chosen_values(run, spec, leaving, site, facts)


async def _find_chosen_values(
    run: Run, spec: ToolSpec, args: JsonObject, site: CallSite, facts: EgressFacts
) -> EgressFinding | None:
    """The reason why a person must allow the call if the run has sent its server many of that server's own values.

    Calls are counted as they are judged, because several of one turn are judged before any is in the log.
    """
    server = _get_server(spec)
    if not server or not facts.is_private_beside(server):
        return None
    intents: list[tuple[str, ToolCalled]] = []
    for run_id, events in await _read_continued(run):
        intents += [(run_id, event.body) for event in events if isinstance(event.body, ToolCalled)]
    intents += [("", call.intent) for attempt, _ in _iter_attempts(run.state) for call in attempt.calls]
    calls = {
        _make_call_key(call.call_id, call.args, run_id): _list_chosen(other, call.args, facts)
        for run_id, call in intents
        if (other := run.engine.registry.find_spec(call.tool)) is not None and _get_server(other) == server
    }
    return _judge_choice(run, server, calls, args, site, _list_chosen(spec, args, facts))


async def _find_chosen_links(
    run: Run, spec: ToolSpec, args: JsonObject, site: CallSite, facts: EgressFacts
) -> EgressFinding | None:
    """The reason why a person must allow the call if the run has followed many links since it read private text."""
    if not facts.is_private or not spec.where_args:
        return None
    intents: list[tuple[str, ToolCalled]] = []
    for run_id, events in await _read_continued(run):
        is_private = bool(events) and _began_private(fold(run_id, events))
        intents += [(run_id, call) for call in _iter_calls_since_private(run, events, is_private=is_private)]
    is_private = facts.starts_private or bool(facts.extra)
    intents += [("", call) for call in _iter_calls_since_private(run, run.events, is_private=is_private)]
    calls = {
        _make_call_key(call.call_id, call.args, run_id): list_chosen_links(call.args, facts, other.where_args)
        for run_id, call in intents
        if (other := run.engine.registry.find_spec(call.tool)) is not None
    }
    return _judge_choice(run, _LINKS, calls, args, site, list_chosen_links(args, facts, spec.where_args))


def _judge_choice(
    run: Run, group: str, calls: dict[str, ChosenValues], args: JsonObject, site: CallSite, chosen: ChosenValues
) -> EgressFinding | None:
    """The reason why a person must allow one more call after the others of its group; None if it counts as one."""
    calls |= run.chosen_values.get(group, {})
    key = _make_call_key(site.call_id, args)
    calls.pop(key, None)
    finding = find_chosen_values(args, [*calls.values(), chosen])
    if finding is None:
        run.chosen_values.setdefault(group, {})[key] = chosen
    return finding


async def _read_continued(run: Run) -> Sequence[tuple[str, Sequence[Event]]]:
    """The runs, with their logs, that this one goes on: each ended with calls of the client's own tools, whose results
    no person need have seen.
    """
    logs: list[tuple[str, Sequence[Event]]] = []
    given = run.state.given
    while given is not None and given.client_results:
        events = await run.journal.read_events(given.from_run)
        logs.insert(0, (given.from_run, events))
        given = fold(given.from_run, events).given if events else None
    return logs


def _began_private(state: RunState) -> bool:
    """Whether a run began with private text in its conversation or its memory."""
    return state.tainted or next(_iter_remembered(state), None) is not None


def _iter_calls_since_private(run: Run, events: Sequence[Event], *, is_private: bool) -> Iterator[ToolCalled]:
    """Yields the calls that were begun after a run had read something private."""
    for event in events:
        body = event.body
        if isinstance(body, ToolReturned):
            spec = run.engine.registry.find_spec(body.tool)
            is_private = is_private or _is_private(spec, tainted=body.tainted)
        elif isinstance(body, ToolCalled) and is_private:
            yield body


def _make_call_key(call_id: str, args: JsonObject, run_id: str = "") -> str:
    """One call, also where a tool makes several within its own. `run_id` is another run than this one."""
    return f"{run_id} {call_id} {json.dumps(args, sort_keys=True)}"


def _list_chosen(spec: ToolSpec, args: JsonObject, facts: EgressFacts) -> ChosenValues:
    return list_chosen_values(args, facts, _get_server(spec), tuple(_iter_fixed_values(spec.input_schema)))


async def check_redirect(run: Run, site: CallSite, source: str, target: str) -> None:
    """Raises `ToolDeniedError` if words could travel on to another host with the redirect."""
    facts = await collect_facts(run, site)
    reason = await asyncio.to_thread(judge_redirect, source, target, facts)
    if reason is not None:
        raise ToolDeniedError(reason)


async def collect_facts(run: Run, site: CallSite, nested: Sequence[ReadText] = ()) -> EgressFacts:
    """The facts about what the run has read so far, and where its addresses may come from."""
    state = run.state
    reads = [*nested, *await _read_shown_answers(run)]
    for attempt, step in _iter_attempts(state):
        if attempt.taken_from and attempt.output is not None:  # of another run, whose calls are not in this log
            address = str(attempt.args.get("url") or "")
            reads.append(await _read_output(run, step.tool if step else "", attempt.output, address))
        reads += [await _read_call(run, call, attempt) for call in attempt.calls if call.result is not None]
    return EgressFacts(
        given=tuple(_iter_given(run, site)),
        replies=collect_replies(state),
        planned=tuple(_iter_planned(state)),
        reads=tuple(reads),
        starts_private=state.tainted or _is_shaped_by_reading(state, 0),
        starts_untrusted=_is_shaped_by_reading(state, -1),
        extra=tuple(_iter_remembered(state)),
    )


async def find_repeated_links(run: Run, answer: str) -> tuple[str, ...] | None:
    """The addresses in the answer of a run that a later message may have fetched; None if the answer holds none."""
    if next(iter_address_keys(answer), None) is None:
        return None
    skills = [CallSite(step.id, 1) for step in run.state.plan_steps if step.action == "skill"]
    facts = await collect_facts(run, CallSite("", 1))
    installed = [text for site in skills for text in _iter_given(run, site)]
    outputs = [own.output for own in run.state.steps.values() if own.output is not None]
    sources = [source.url for output in outputs for source in output.sources if source.url]
    texts = (*installed, *sources, *split_messages(run.state)[1])
    return await asyncio.to_thread(list_repeated_links, answer, facts, texts)


def make_nested_read(spec: ToolSpec, args: JsonObject, text: str, *, tainted: bool) -> ReadText:
    """The facts about what a tool has read by calling another one within its own call."""
    return _make_read(spec, spec.name, text, args, tainted=tainted)


async def _read_call(run: Run, call: CallState, attempt: AttemptState) -> ReadText:
    """The facts about what a call has read."""
    result = call.result
    assert result is not None, "the caller leaves out calls in flight"
    spec = run.engine.registry.find_spec(call.intent.tool)
    if result.error_code is not None:  # a foreign server writes its own error messages
        foreign = spec is None or is_foreign(spec)
        return _make_read(spec, result.tool, result.error or "", call.intent.args, tainted=foreign)
    if spec is not None and spec.uses_subagents and _has_read_public_pages_only(run, call, attempt):
        return ReadText(result.text, is_untrusted=result.tainted)
    output = await load_output(run, to_step_output(result))
    read = _make_read(spec, call.intent.tool, output.text, call.intent.args, tainted=result.tainted, value=output.value)
    # Typed fields of results say nothing more than these, which are among the reads: a server may have its own back.
    return replace(read, is_private=False) if call.intent.tool == EXTRACT else read


async def _read_output(run: Run, tool: str, output: StepOutput, address: str) -> ReadText:
    loaded = await load_output(run, output)
    spec = run.engine.registry.find_spec(tool)
    return _make_read(spec, tool, loaded.text, {"url": address}, tainted=loaded.tainted, value=loaded.value)


def _make_read(
    spec: ToolSpec | None, tool: str, text: str, args: JsonObject, *, tainted: bool, value: JsonValue = None
) -> ReadText:
    is_page = spec is not None and bool(spec.where_args)
    requested = next((str(args[name]) for name in (spec.where_args if spec else ()) if args.get(name)), "")
    final = value.get("url") if isinstance(value, dict) else None
    whole = text if isinstance(value, str) or value is None else f"{text}\n{json.dumps(value, ensure_ascii=False)}"
    return ReadText(
        whole,
        is_untrusted=tainted,
        is_private=_is_private(spec, tainted=tainted),
        address=(final if isinstance(final, str) and final else requested) if is_page else "",
        requested=requested,
        server=_get_server(spec) if spec is not None else "",
        is_shown=tool == SKILL_FILE_TOOL and not tainted,
    )


def _is_private(spec: ToolSpec | None, *, tainted: bool) -> bool:
    return tainted and not (spec is not None and spec.reads_public_pages)


def _has_read_public_pages_only(run: Run, call: CallState, attempt: AttemptState) -> bool:
    """Whether the sub-agents of a call read untrusted text, all of it public pages."""
    begin = call.intent.call_id
    inner = [
        other
        for other in attempt.calls
        if other.intent.span in (begin, *(s for s in run.state.subagents if s.startswith((f"{begin}~", f"{begin}/"))))
    ]
    specs = [
        run.engine.registry.find_spec(one.intent.tool) for one in inner if one.result is not None and one.result.tainted
    ]
    return bool(specs) and all(spec is not None and spec.reads_public_pages for spec in specs)


def _iter_given(run: Run, site: CallSite) -> Iterator[str]:
    """Yields what the user, the room and the operator wrote. An assistant's message is none of theirs."""
    state = run.state
    texts = [*state.own_prompts]
    history = state.retrieval.history if state.retrieval is not None else ()
    messages = (*(state.request.messages or ()), *history)
    texts += [message.content for message in messages if message.role in ("user", "system", "developer")]
    yield from (split_attachments(text).own for text in texts)  # a document that a client attached gives no address
    yield from state.room.operator_texts
    if not state.has_outside_prompt:  # who wrote such a prompt named its schedule too
        own = {name: value for name, value in state.request.metadata.items() if name != _SCHEDULE}
        yield json.dumps(own, ensure_ascii=False)
    step = state.steps_of_all_plans.get(site.step_id)
    if step is not None and step.action == "skill":
        try:
            yield run.engine.skills.get(step.tool).read_body()
        except SkillUnknownError:
            return


def _iter_planned(state: RunState) -> Iterator[str]:
    """Yields the texts in the arguments of plans that no untrusted text could shape, or that a person approved."""
    for number, proposed in enumerate(state.plans):
        is_approved = proposed is state.plans[-1] and is_plan_approved(state)
        if is_approved or not _is_shaped_by_reading(state, number):
            yield from (json.dumps(step.args, ensure_ascii=False) for step in proposed.plan.steps)


def _is_shaped_by_reading(state: RunState, number: int) -> bool:
    """Whether a plan was made after untrusted text was read, or quotes names of the user's files and documents.

    The plan of a recipe was made by an earlier run and chosen by the user.
    """
    if not state.plans:
        return False
    proposed = state.plans[number]
    is_recipe = state.understanding is not None and state.understanding.route == "recipe"
    return proposed.tainted and not (is_recipe and proposed.plan.version == 0)


def _iter_remembered(state: RunState) -> Iterator[str]:
    """Yields untrusted memories and results of the run before, which models of this run have read."""
    if state.retrieval is not None:
        yield from (item.text for item in state.retrieval.items if item.tainted)
        yield from (earlier.text for earlier in state.retrieval.earlier_results if earlier.tainted)


async def _read_shown_answers(run: Run) -> list[ReadText]:
    """The answers of a conversation that is stored here. A client's history may hold what nobody was shown."""
    state = run.state
    recalled = state.retrieval
    if recalled is None or recalled.source != "conversation":
        return []
    answers = [message.content for message in recalled.history if message.role == "assistant"]
    private = state.tainted
    repeated = await _load_repeated_links(run) if private else None
    return [
        ReadText(text, is_untrusted=private, is_private=private, is_shown=True, repeated_keys=repeated)
        for text in answers
    ]


async def _load_repeated_links(run: Run) -> frozenset[str]:
    """The addresses in the answers of this conversation that no model made up, as their runs recorded them."""
    if run.repeated_links is None:
        conversation, parent = run.state.request.conversation_id or "", run.state.request.parent
        run_ids = await run.engine.conversations.list_answer_runs(run.state.owner, conversation, parent=parent)
        logs = [await run.journal.read_events(run_id) for run_id in run_ids if run_id != run.run_id]
        answers = [event.body for log in logs for event in log if isinstance(event.body, AnswerFinished)]
        run.repeated_links = frozenset(key for answer in answers for key in answer.links or ())
    return run.repeated_links


def _iter_attempts(state: RunState) -> Iterator[tuple[AttemptState, PlanStep | None]]:
    planned = state.steps_of_all_plans
    for step_id, own in state.steps.items():
        yield from ((attempt, planned.get(step_id)) for attempt in own.attempts)


def _get_server(spec: ToolSpec) -> str:
    return get_server_name(spec) if is_foreign(spec) else ""


def _iter_fixed_values(schema: JsonObject) -> Iterator[JsonValue]:
    """Yields what a tool's schema lists or gives as a default, and the names of the fields within its arguments."""
    for argument in collect_arguments(schema)[0].values():
        for one in iter_nested_schemas(argument, schema):
            listed = one.get("enum")
            yield from listed if isinstance(listed, list) else ()
            yield from get_properties(one)
            yield from (one[key] for key in ("const", "default") if key in one)
