"""Redacts events before they are logged: `EventRedactor.redact` has one rule for each type that holds text.

Whatever the answer may not hold, by the policy of its room, plans, verdicts, turns and results may not hold either.
Arguments stay: they are what will be done, and what a person approves. Types without a rule hold nothing that a model
or a tool wrote, or were redacted on their way in (`agent.policy.redaction.inbound`).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from agent.core import events as ev
from agent.core.content_blocks import build_omission_notice, restore_bytes, strip_bytes
from agent.core.models import JsonObject, Source
from agent.core.run_state import RunState
from agent.llm.provider_fields import map_reasoning
from agent.policy.guardrails.plain_text import remove_live_parts
from agent.policy.guardrails.run_links import make_link_filter
from agent.policy.redaction.answers import (
    collect_caller_text,
    get_answer_pii,
    make_answer_secret_finder,
    remove_personal_data,
)
from agent.policy.redaction.secrets import make_secret_finder

PIECE_CHARS, LONGEST_KEY = 50_000, 10_000
"""Bytes are searched in such pieces, each with the beginning of the next, into which a secret may reach."""


class ResultParts(NamedTuple):
    """The parts of a tool's result that hold text."""

    text: str
    value: JsonValue
    sources: tuple[Source, ...]


class EventRedactor:
    """The policy of one run. Pure: the same event at the same state of the run gives the same result, however often it
    is redacted.

    `get_state` returns the run's present state: an answer may repeat what trusted tools have returned meanwhile.
    `stored_texts`: see `make_link_filter`.
    """

    def __init__(
        self, get_state: Callable[[], RunState], secrets: tuple[str, ...], stored_texts: Mapping[str, str]
    ) -> None:
        state = get_state()
        guards = state.room.guard_output
        self._guards = guards
        self._own = secrets
        self._scanner = make_secret_finder(secrets, "forms" if guards.redacts_secrets else "known")
        self._errors = make_secret_finder(secrets, "forms")
        self._answers = make_answer_secret_finder(guards, secrets)
        self._is_personal = guards.pii in ("redact", "block")
        self._get_state = get_state
        self._stored_texts = stored_texts
        self._caller_text = collect_caller_text(state) if self._is_personal else ""
        self.clean_text = ""
        """The last text of a model in which nothing was found that an answer may not hold. A text passes several times:
        as a stream, as the output of a step, as the answer."""

    def redact(self, body: ev.EventBody, *, by_model: bool = True) -> ev.EventBody:
        """The event as the log may hold it. `by_model`: whether a model wrote the output of a step."""
        rule = RULES.get(type(body))
        if rule is None and type(body) not in WITHOUT_RULE:
            if not isinstance(body, ev.FeatureEvent) or not ev.is_declared(body):
                raise TypeError(f"no feature declares the event {body.type!r} of {type(body).__qualname__}")
            return body.redact(lambda text: self.redact_text(self._clean_links(text)))
        if rule is None or (isinstance(body, ev.StepFinished) and not by_model and body.output.error is None):
            return body
        redacted: ev.EventBody = rule(self, body)
        return redacted

    def redact_text(self, text: str) -> str:
        """A text without secrets and, where the room keeps it from its answers, others' personal data."""
        return self._without_personal(self._scanner.redact(text)) if text else text

    def redact_answer_text(self, text: str) -> str:
        """A model's text as an answer may hold it: what is called a password is removed too, and no link or image
        carries away what was read. Traces, step cards and events of every protocol quote it.
        """
        text = self._clean_links(text)
        if text == self.clean_text:
            return text
        redacted = self._answers.redact(text)
        if get_answer_pii(self._get_state()) == "redact_answer":
            redacted = remove_personal_data(redacted, collect_caller_text(self._get_state()))
        else:
            redacted = self._without_personal(redacted)
        if redacted == text:
            self.clean_text = text
        return redacted

    def redact_error_message(self, text: str) -> str:
        """A message about a failure; providers and libraries quote the key they refuse."""
        return self._errors.redact(text)

    def redact_provider_fields(self, fields: JsonObject) -> JsonObject:
        """A reply's provider fields: the reasoning as streams show it, and none at all in a room that looks at its
        answers as a whole."""
        if self._guards.requires_whole_answer:
            return {key: value for key, value in fields.items() if key == "extra_content"}
        return map_reasoning(fields, lambda text: self._clean_links(self._answers.redact(text)))

    def replace_output_text(self, output: ev.StepOutput, text: str) -> ev.StepOutput:
        """A model's text for a step, replaced by the redacted `text`."""
        value, tailored, fields = output.value, output.tailored, output.provider_fields
        calls = value.get("tool_calls") if isinstance(value, dict) else None
        if text == output.text and not calls and not fields:
            return output
        if text != output.text:
            value = {**value, "text": text} if isinstance(value, dict) else text
            tailored = tailored.model_copy(update={"content": text}) if tailored is not None else None
        if isinstance(value, dict) and isinstance(calls, list):
            value = {**value, "tool_calls": self.redact_tool_calls(calls)}
        fields = self.redact_provider_fields(fields) if fields else fields
        return output.model_copy(update={"text": text, "value": value, "tailored": tailored, "provider_fields": fields})

    def redact_tool_calls(self, calls: Iterable[JsonValue]) -> list[JsonValue]:
        """The calls of a client's tools with their arguments redacted, and still JSON."""
        return [self._redact_tool_call(call) for call in calls]

    def may_hold_secret(self, parts: ResultParts, encoded: str | None = None) -> bool:
        """Whether there may be anything to remove from a result; False is certain. `encoded` is its value as
        JSON, if it is known.
        """
        if encoded is None:
            encoded = json.dumps(parts.value, ensure_ascii=False, default=str)
        quotes = (part for s in parts.sources for part in (s.name, s.url or "", *s.quotes))
        return self._suspects((parts.text, encoded, *quotes))

    def redact_result(self, parts: ResultParts) -> ResultParts:
        """A tool's result redacted, names and numbers in its value too."""
        from agent.policy.guardrails.spans import map_json_texts  # noqa: PLC0415 - loaded with the first request

        sources = tuple(
            source.model_copy(
                update={
                    "name": self.redact_text(source.name),
                    "url": self.redact_text(source.url) if source.url is not None else None,
                    "quotes": tuple(map(self.redact_text, source.quotes)),
                }
            )
            for source in parts.sources
        )
        value = map_json_texts(parts.value, lambda text, _: self.redact_text(text))
        return ResultParts(self.redact_text(parts.text), value, sources)

    def redact_secrets(self, parts: ResultParts, *, by_model: bool) -> ResultParts:
        """A result without secrets, but with its personal data. Sources are left out."""
        from agent.policy.guardrails.spans import map_json_texts  # noqa: PLC0415 - loaded with the first request

        finder = self._answers if by_model else self._scanner
        value = map_json_texts(parts.value, lambda text, _: finder.redact(text))
        return ResultParts(finder.redact(parts.text), value, ())

    def redact_content_blocks(self, blocks: Iterable[JsonObject]) -> list[JsonObject]:
        """A tool's content blocks. A block whose bytes hold a secret of this gateway is left out."""
        bare, parts = strip_bytes(list(blocks))
        words: JsonValue = [*bare]
        clean = ResultParts("", words, ())
        clean = self.redact_result(clean) if self.may_hold_secret(clean) else clean
        values = clean.value if isinstance(clean.value, list) else []
        whole = restore_bytes([block for block in values if isinstance(block, dict)], parts)
        if not self._own:
            return whole
        why = "it holds a secret of this gateway"
        return [
            build_omission_notice(block, why) if self._may_bytes_hold_secret(part) else block
            for block, part in zip(whole, parts, strict=True)
        ]

    def _clean_links(self, text: str) -> str:
        links = make_link_filter(self._get_state(), self._stored_texts)
        return links.sanitize(text) if links is not None else text

    def _suspects(self, texts: Iterable[str]) -> bool:
        return self._is_personal or self._scanner.may_contain_secret("\n".join(texts))

    def _without_personal(self, text: str) -> str:
        if not self._is_personal:
            return text
        return remove_personal_data(text, self._caller_text)

    def _may_bytes_hold_secret(self, data: str) -> bool:
        own = make_secret_finder(self._own, "known")
        places = range(0, len(data), PIECE_CHARS)
        return any(own.may_contain_secret(data[at : at + PIECE_CHARS + LONGEST_KEY]) for at in places)

    def _redact_tool_call(self, call: JsonValue) -> JsonValue:
        function = call.get("function") if isinstance(call, dict) else None
        arguments = read_arguments(call)
        if not isinstance(call, dict) or not isinstance(function, dict) or not self._suspects((arguments,)):
            return call
        return {**call, "function": {**function, "arguments": self._redact_arguments(arguments)}}

    def _redact_arguments(self, written: str) -> str:
        """Arguments redacted; in numbers too, for the digits of cards are written as numbers."""
        from agent.policy.guardrails.spans import map_json_texts  # noqa: PLC0415 - as above

        def number(digits: str) -> int | str:
            return int(digits) if self.redact_text(digits) == digits else self.redact_text(digits)

        try:
            arguments: JsonValue = json.loads(written, parse_int=number)
        except (ValueError, RecursionError):  # no JSON: the client will say so
            return self.redact_text(written)
        clean = map_json_texts(arguments, lambda text, _: self.redact_text(text))
        return written if clean == json.loads(written) else json.dumps(clean, ensure_ascii=False)

    # The rules, in the order of a run.

    def _redact_plan_rejected(self, body: ev.PlanRejected) -> ev.PlanRejected:
        return body.model_copy(
            update={"problems": tuple(map(self.redact_text, body.problems)), "excerpt": self.redact_text(body.excerpt)}
        )

    def _redact_input_requested(self, body: ev.InputRequested) -> ev.InputRequested:
        return body.model_copy(update={"question": self.redact_answer_text(body.question)})

    def _redact_entries(self, body: ev.EntriesSelected) -> ev.EntriesSelected:
        text, heading = (self.redact_text(self._clean_links(text)) for text in (body.text, body.heading))
        return body.change(text=text, heading=heading)

    def _redact_intent_classified(self, body: ev.IntentClassified) -> ev.IntentClassified:
        from agent.policy.guardrails.spans import map_json_texts  # noqa: PLC0415 - loaded with the first request

        tree: JsonValue = body.model_dump(mode="json")
        clean = map_json_texts(tree, lambda text, _: remove_live_parts(self.redact_text(text)))
        return body if clean == tree else type(body).model_validate(clean)

    def _redact_plan_proposed(self, body: ev.PlanProposed) -> ev.PlanProposed:
        body = self._remove_live_parts_of_plan(body)
        plan = body.plan
        intents = [step.intent for step in plan.steps]
        reasons = (plan.origin_reason or "", body.fallback_reason or "", body.replan_reason or "")
        if not self._suspects((plan.goal, plan.reasoning, body.follows, *reasons, *intents)):
            return body
        steps = tuple(step.model_copy(update={"intent": self.redact_text(step.intent)}) for step in plan.steps)
        words = {"goal": self.redact_text(plan.goal), "reasoning": self.redact_text(plan.reasoning)}
        origin, fallback, replan = (
            self.redact_text(reason) if reason else reason
            for reason in (plan.origin_reason, body.fallback_reason, body.replan_reason)
        )
        update = {
            "plan": plan.model_copy(update={**words, "origin_reason": origin, "steps": steps}),
            "fallback_reason": fallback,
            "replan_reason": replan,
            "follows": self.redact_text(body.follows),
        }
        return body.model_copy(update=update)

    def _remove_live_parts_of_plan(self, body: ev.PlanProposed) -> ev.PlanProposed:
        """A plan whose words for people load nothing and carry nothing away, at any door that renders Markdown.

        The words are a model's, and people read them before they decide. Arguments stay: they are executed.
        """
        links = make_link_filter(self._get_state(), self._stored_texts)

        def clean(text: str) -> str:
            return remove_live_parts(links.sanitize(text) if links is not None else text)

        plan, reasons = body.plan, {"fallback_reason": body.fallback_reason, "replan_reason": body.replan_reason}
        steps = tuple(step.change(intent=clean(step.intent)) for step in plan.steps)
        cleaned_plan = plan.change(goal=clean(plan.goal), reasoning=clean(plan.reasoning), steps=steps)
        return body.change(plan=cleaned_plan, **{name: clean(reason) for name, reason in reasons.items() if reason})

    def _redact_model_returned(self, body: ev.ModelReturned) -> ev.ModelReturned:
        turn = body.message
        if turn is None:
            return body
        update = {
            "text": self.redact_answer_text(turn.text),
            "provider_fields": self.redact_provider_fields(turn.provider_fields),
        }
        return body.model_copy(update={"message": turn.model_copy(update=update)})

    def _redact_tool_returned(self, body: ev.ToolReturned) -> ev.ToolReturned:
        error = self.redact_error_message(body.error) if body.error else body.error
        parts = ResultParts(body.text, body.output, body.sources)
        if not self.may_hold_secret(parts):
            return body if error == body.error else body.model_copy(update={"error": error})
        text, value, sources = self.redact_result(parts)
        return body.model_copy(update={"text": text, "output": value, "sources": sources, "error": error})

    def _redact_subagent_finished(self, body: ev.SubAgentFinished) -> ev.SubAgentFinished:
        from agent.policy.guardrails.spans import map_json_texts  # noqa: PLC0415 - loaded with the first request

        tree: JsonValue = body.result.model_dump(mode="json")
        clean = map_json_texts(tree, lambda text, _: self.redact_text(self._clean_links(text)))
        return body if clean == tree else body.model_copy(update={"result": type(body.result).model_validate(clean)})

    def _redact_step_finished(self, body: ev.StepFinished) -> ev.StepFinished:
        output = body.output
        if output.error is not None:
            error = self.redact_error_message(output.error)
            return body.model_copy(update={"output": output.model_copy(update={"error": error})})
        redacted = self.replace_output_text(output, self.redact_answer_text(output.text))
        return body if redacted is output else body.model_copy(update={"output": redacted})

    def _redact_step_judged(self, body: ev.StepJudged) -> ev.StepJudged:
        verdict = body.verdict
        if verdict.by != "model":
            return body  # what a rule says is taken from results, which were redacted before
        written = {name: getattr(verdict, name) or "" for name in ("reason", "evidence", "suggested_fix")}
        words = {name: self.redact_text(self._clean_links(text)) if text else None for name, text in written.items()}
        words |= {"reason": words["reason"] or "", "evidence": words["evidence"] or ""}
        return body.model_copy(update={"verdict": verdict.model_copy(update=words)})

    def _redact_answer_body(self, body: Any) -> Any:
        return body.model_copy(update={"text": self._answers.redact(body.text)}) if body.text else body

    def _redact_answer_checked(self, body: ev.AnswerChecked) -> ev.AnswerChecked:
        clean = self.redact_answer_text
        problems = (
            one.model_copy(update={"text": clean(one.text), "reason": clean(one.reason)}) for one in body.problems
        )
        return body.model_copy(update={"problems": tuple(problems)})

    def _redact_gate_checked(self, body: ev.GateChecked) -> ev.GateChecked:
        failures = tuple(map(self.redact_answer_text, body.failures))
        return body.change(reason=self.redact_error_message(body.reason), failures=failures)

    def _redact_run_failed(self, body: ev.RunFailed) -> ev.RunFailed:
        message = self.redact_error_message(body.failure.message)
        failure = body.failure.model_copy(update={"message": message})
        return body.model_copy(update={"failure": failure, "written": self.redact_answer_text(body.written)})


def holds_text(body: ev.EventBody) -> bool:
    """Whether a model, a tool or a feature may have written something in this event."""
    if type(body) is ev.ModelReturned:
        return body.message is not None
    return type(body) in RULES or type(body) not in WITHOUT_RULE


def read_arguments(call: JsonValue) -> str:
    """The arguments of a call, as the model wrote them."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else ""


RULES: Mapping[type[ev.EventBody], Callable[[EventRedactor, Any], ev.EventBody]] = {
    ev.PlanRejected: EventRedactor._redact_plan_rejected,
    ev.PlanProposed: EventRedactor._redact_plan_proposed,
    ev.InputRequested: EventRedactor._redact_input_requested,
    ev.IntentClassified: EventRedactor._redact_intent_classified,
    ev.ModelReturned: EventRedactor._redact_model_returned,
    ev.ToolReturned: EventRedactor._redact_tool_returned,
    ev.EntriesSelected: EventRedactor._redact_entries,
    ev.SubAgentFinished: EventRedactor._redact_subagent_finished,
    ev.StepFinished: EventRedactor._redact_step_finished,
    ev.StepJudged: EventRedactor._redact_step_judged,
    ev.AnswerDelta: EventRedactor._redact_answer_body,
    ev.AnswerChecked: EventRedactor._redact_answer_checked,
    ev.AnswerTranslated: EventRedactor._redact_answer_body,
    ev.AnswerFinished: EventRedactor._redact_answer_body,
    ev.GateChecked: EventRedactor._redact_gate_checked,
    ev.RunFailed: EventRedactor._redact_run_failed,
}
"""The rule of each type whose events hold text of a model or a tool."""
_OF_THE_REQUEST = "the request's, redacted as it comes in"
_OURS = "written by the engine, or names and ids"
_EXECUTED = "executed as it stands; the doors redact what they show"
WITHOUT_RULE: Mapping[type[ev.EventBody], str] = {
    ev.RunCreated: _OF_THE_REQUEST,
    ev.InputGuarded: _OF_THE_REQUEST,
    ev.RequestUnderstood: _OF_THE_REQUEST,
    ev.CancelRequested: "a person's",
    ev.ApprovalDecided: "a person's",
    ev.StepStarted: _EXECUTED,
    ev.ToolCalled: _EXECUTED,
    ev.ToolRefused: _EXECUTED,
    ev.SubAgentStarted: _EXECUTED,
    **dict.fromkeys(
        (
            ev.RunClaimed,
            ev.RunSuspended,
            ev.RunWaiting,
            ev.RunSucceeded,
            ev.RunCancelled,
            ev.MemoryRetrieved,
            ev.ApprovalRequested,
            ev.StepSpeculative,
            ev.StepDiscarded,
            ev.StepUnknown,
            ev.AnswerStarted,
            ev.OutputGuarded,
            ev.ClientToolsCalled,
        ),
        _OURS,
    ),
}
"""The types whose texts need no rule, and whose they are. A new type stands here or has a rule."""
