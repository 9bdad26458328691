"""`SkillExecutor`: a skill's body instructs the model, which may call only the tools the skill is scoped to.

The loop is bounded by turns. Every turn is in the log, so a skill that was interrupted goes on with the turn it
was in; calls outside the scope are refused, recorded, and told to the model.
"""

import asyncio
import json
from dataclasses import dataclass

from agent.core.errors import ModelError, SkillTurnsError, ToolError
from agent.core.events import AssistantTurn, Draft, StepOutput, ToolRefused, ToolReturned
from agent.core.fold import AttemptState
from agent.core.models import JsonObject, PlanStep, Source
from agent.execution.metering import MeteredModels
from agent.execution.outputs import SKILL_CHARS, args_text, cap, data_block, load, step_output
from agent.execution.rules_skill import run_by_rules
from agent.execution.run import Run
from agent.execution.skill_files import SkillFileTool
from agent.execution.tool_gateway import CallSite, call_tool, lost_effect
from agent.prompts import render
from agent.skills import Skill
from agent.tools import Tool

MAX_CALLS_A_TURN = 16
"""Tools called for one turn of a model; one that asks for hundreds is in a loop."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One tool call of a turn. `args` is None when the model's arguments are no JSON object."""

    id: str
    name: str
    args: JsonObject | None
    raw: str


class SkillExecutor:
    """Carries out one attempt of a skill step."""

    def __init__(self, run: Run, step: PlanStep, attempt: int) -> None:
        self._run = run
        self._step = step
        self._attempt = attempt
        self._skill: Skill = run.engine.skills.get(step.tool)
        self._tools = scoped_tools(run, self._skill)
        self._calls = 0
        self._tainted = False
        self._sources: list[Source] = []

    async def execute(self, args: JsonObject, feedback: str | None, *, tainted: bool) -> StepOutput:
        """The skill's final text. Raises `SkillTurnsError`, `ModelOutputError` and `BudgetError`; when no model can
        be asked the skill falls back to its tools by rule, and says so."""
        self._tainted = tainted
        if not self._run.has_model:
            return await self._by_rules(args, "no model is configured")
        try:
            text = await self._converse(args, feedback)
        except ModelError as error:
            if error.code == "ERR_MODEL_OUTPUT":
                raise
            return await self._by_rules(args, error.message)
        sources = tuple(dict.fromkeys(self._sources))
        return StepOutput(value=text, text=text, tainted=self._tainted, sources=sources)

    async def _converse(self, args: JsonObject, feedback: str | None) -> str:
        """The bounded loop: ask, call, tell; until the model answers in text."""
        messages = [await asyncio.to_thread(self._system, args), self._task(args, feedback)]
        recorded = list(self._recorded_turns())
        models = MeteredModels(self._run, self._step.id, self._attempt)
        wire = tuple(tool.spec.wire() for tool in self._tools.values())
        for turn in range(self._skill.max_turns):
            last = turn == self._skill.max_turns - 1
            if turn < len(recorded):
                said = recorded[turn]
            else:
                reply = await models.complete(
                    "skill",
                    tuple(messages),
                    tier=self._skill.tier or "fast",
                    tools=() if last else wire,
                    keep_message=True,
                )
                said = AssistantTurn(
                    text=reply.text,
                    tool_calls=tuple({"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls),
                )
            calls = self._calls_of(said)
            if not calls:
                return said.text
            messages.append(_assistant(said, calls))
            messages += await self._carry_out(calls)
        raise SkillTurnsError(
            f"skill {self._skill.name!r} used its {self._skill.max_turns} turns without an answer",
            agent_id=self._skill.name,
        )

    async def _carry_out(self, calls: list[_Call]) -> list[JsonObject]:
        """The turn's calls, at once; their results in the order of the calls."""
        first = self._calls + 1
        self._calls += len(calls)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(call, first, place)) for place, call in enumerate(calls)]
        except BaseExceptionGroup as failures:  # the first cause, as the rest of the engine knows it
            raise failures.exceptions[0] from None
        return [
            {"role": "tool", "tool_call_id": call.id, "content": task.result()}
            for call, task in zip(calls, tasks, strict=True)
        ]

    async def _one(self, call: _Call, first: int, place: int) -> str:
        """One call: refused, or carried out; the text the model is told. `place` counts within the turn, from 0."""
        site = CallSite(self._step.id, self._attempt, first + place)
        tool = self._tools.get(call.name)
        if tool is None:
            lost = await lost_effect(self._run, site)
            if lost is not None:
                raise ToolError(lost.error or "the outcome of a call is unknown", agent_id=call.name)
            allowed = ", ".join(self._tools) or "none"
            return await self._refuse(call, site, f"{call.name!r} is not among this skill's tools ({allowed})")
        if place >= MAX_CALLS_A_TURN:
            return await self._refuse(call, site, f"at most {MAX_CALLS_A_TURN} calls are made in one turn")
        if call.args is None:
            return f"Error: the arguments are no JSON object: {cap(call.raw, 200)}"
        returned = await call_tool(self._run, tool, call.args, site, tainted=self._tainted)
        if not self._is_recorded(site.call_id):
            await self._note(returned)
        if returned.error_code == "ERR_TOOL_UNKNOWN_OUTCOME":
            raise ToolError(returned.error or "the outcome of a call is unknown", agent_id=call.name)
        return await self._told(returned)

    async def _refuse(self, call: _Call, site: CallSite, why: str) -> str:
        reason = f"{why}; it was not called"
        if not self._is_recorded(site.call_id):
            await self._note(ToolRefused(call_id=site.call_id, tool=call.name, args=call.args or {}, reason=reason))
        return f"Refused: {reason}."

    async def _told(self, returned: ToolReturned) -> str:
        """A result as the model reads it: capped, and marked as data when it came from outside."""
        if returned.error_code is not None:
            return f"Error ({returned.error_code}): {returned.error}"
        output = await load(self._run, step_output(returned))
        self._tainted = self._tainted or output.tainted
        self._sources += output.sources
        if not output.tainted:
            return cap(output.text, SKILL_CHARS)
        return data_block("data", output.text, limit=SKILL_CHARS, source=returned.tool)

    async def _by_rules(self, args: JsonObject, reason: str) -> StepOutput:
        output = await run_by_rules(self._run, self._step, self._attempt, self._tools, args, tainted=self._tainted)
        return output.model_copy(update={"effective": "rules", "fallback_reason": reason})

    def _calls_of(self, said: AssistantTurn) -> list[_Call]:
        """The calls of a turn; also the one that a small model wrote as JSON into its text."""
        calls = [_parse(str(c["id"]), str(c["name"]), str(c["arguments"])) for c in said.tool_calls]
        if calls:
            return calls
        written = _written_call(said.text)
        if written is not None and written[0] in self._tools:
            return [_parse(f"text_{self._calls + 1}", *written)]
        return []

    def _system(self, args: JsonObject) -> JsonObject:
        room, skill = self._run.room, self._skill
        system = room.system_prompt + "\n\n" if room.system_prompt else ""
        files = skill.files()
        instructions = skill.instructions(str(args.get("task", "")))
        if files:
            instructions += "\n\nFiles of this skill (read with read_skill_file): " + ", ".join(files[:50])
        content = render("skill", system=system, name=skill.name, instructions=instructions)
        return {"role": "system", "content": content}

    def _task(self, args: JsonObject, feedback: str | None) -> JsonObject:
        task = str(args.get("task") or self._step.intent)
        others = {key: value for key, value in args.items() if key != "task"}
        inputs = data_block("data", args_text(others), limit=SKILL_CHARS, name="inputs") + "\n" if others else ""
        told = f"\nAn earlier attempt was not accepted: {feedback}\nDo it better this time." if feedback else ""
        content = render("skill_task", task=cap(task, SKILL_CHARS), inputs=inputs, feedback=told)
        return {"role": "user", "content": content.strip()}

    def _recorded_turns(self) -> tuple[AssistantTurn, ...]:
        attempt = self._attempt_state()
        return attempt.turns if attempt else ()

    def _is_recorded(self, call_id: str) -> bool:
        """Whether the end of this call stands in the log already: an earlier process was here before."""
        attempt = self._attempt_state()
        call = attempt.call(call_id) if attempt else None
        if call is not None:
            return call.returned is not None or call.unknown is not None
        return attempt is not None and call_id in attempt.refused

    def _attempt_state(self) -> AttemptState | None:
        return self._run.state.step(self._step.id).attempt(self._attempt)

    async def _note(self, body: ToolRefused | ToolReturned) -> None:
        await self._run.emit(Draft(body, self._step.id, self._attempt))


def scoped_tools(run: Run, skill: Skill) -> dict[str, Tool]:
    """The tools a skill may call here: what it declares, within what the room and the caller allow, and its files."""
    available = allowed_tools(run)
    tools: dict[str, Tool] = {name: run.engine.registry.get(name) for name in skill.scope(available)}
    if skill.files():
        tools["read_skill_file"] = SkillFileTool(skill)
    return tools


def allowed_tools(run: Run) -> list[str]:
    """Names of the registered tools the room and the caller's `metadata.tools` allow."""
    names = [spec.name for spec in run.engine.registry.specs(run.room.tools)]
    wanted = run.state.request.metadata.get("tools")
    return [name for name in names if name in wanted] if isinstance(wanted, list) else names


def _assistant(said: AssistantTurn, calls: list[_Call]) -> JsonObject:
    return {
        "role": "assistant",
        "content": said.text or None,
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}
            for call in calls
        ],
    }


def _parse(call_id: str, name: str, raw: str) -> _Call:
    try:
        args = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        args = None
    return _Call(call_id, name, args if isinstance(args, dict) else None, raw or "{}")


def _written_call(text: str) -> tuple[str, str] | None:
    """`{"name": ..., "arguments"|"parameters": {...}}` as the whole text, fenced or not."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if not body.startswith("{"):
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    args = value.get("arguments", value.get("parameters"))
    if not isinstance(value.get("name"), str) or not isinstance(args, dict):
        return None
    return value["name"], json.dumps(args)
