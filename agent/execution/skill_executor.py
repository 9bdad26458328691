"""`SkillExecutor`: a skill's body instructs the model, which may call only the tools the skill is scoped to.

The loop is bounded by turns. Every turn is in the log, so a skill that was interrupted goes on with the turn it
was in; calls outside the scope are refused, recorded, and told to the model.
"""

import asyncio

from agent.core.errors import ModelError, ModelNotConfiguredError, SkillTurnsError
from agent.core.events import AssistantTurn, StepOutput
from agent.core.llm.port import ModelReply
from agent.core.models import JsonObject, PlanStep, Tier
from agent.execution.metering import MeteredModels
from agent.execution.outputs import SKILL_CHARS, args_text, cap, data_block
from agent.execution.rules_skill import run_by_rules
from agent.execution.run import Run
from agent.execution.site import CallSite
from agent.execution.skill_files import SkillFileTool
from agent.execution.streaming import Voice
from agent.execution.tool_turns import ToolTurns, assistant_message
from agent.prompts import render
from agent.skills import Skill
from agent.tools import Tool


class SkillExecutor:
    """Carries out one attempt of a skill step."""

    def __init__(self, run: Run, step: PlanStep, attempt: int) -> None:
        self._run = run
        self._step = step
        self._attempt = attempt
        self._skill: Skill = run.engine.skills.get(step.tool)
        self._tools = scoped_tools(run, self._skill)
        self._turns = ToolTurns(run, self._tools, self._site, whose="skill", tainted=False)

    async def execute(self, args: JsonObject, feedback: str | None, *, tainted: bool) -> StepOutput:
        """The skill's final text. Raises `SkillTurnsError`, `ModelOutputError` and `BudgetError`; when no model can
        be asked the skill falls back to its tools by rule, and says so."""
        self._turns.tainted = tainted
        if not self._run.works_with_model:
            if self._run.room.requires_model:
                raise ModelNotConfiguredError(
                    f"the room {self._run.room.id!r} needs a model, and none may be asked: "
                    "set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST, or let rules take over "
                    "(AGENT_CONVERSATIONS_REQUIRE_LLM=false)",
                    agent_id=self._skill.name,
                )
            return await self._by_rules(args, None if self._run.rules_are_meant else "no model is configured")
        try:
            text = await self._converse(args, feedback)
        except ModelError as error:
            if error.code == "ERR_MODEL_OUTPUT" or self._run.room.requires_model:
                raise
            return await self._by_rules(args, error.message)
        sources = tuple(dict.fromkeys(self._turns.sources))
        return StepOutput(value=text, text=text, tainted=self._turns.tainted, sources=sources)

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
                said = await self._turn(models, tuple(messages), () if last else wire)
            calls = self._turns.calls_of(said)
            if not calls:
                if turn < len(recorded) and self._answers:  # some of it may have been heard, before a crash
                    await self._voice().take_back("the answer is told again, from the log")
                return said.text
            messages.append(assistant_message(said, calls))
            messages += await self._turns.carry_out(calls)
        raise SkillTurnsError(
            f"skill {self._skill.name!r} used its {self._skill.max_turns} turns without an answer",
            agent_id=self._skill.name,
        )

    async def _turn(
        self, models: MeteredModels, messages: tuple[JsonObject, ...], tools: tuple[JsonObject, ...]
    ) -> AssistantTurn:
        """What the model says next; as it comes, where that may be the answer of the run."""
        if not self._answers:
            reply = await models.complete("skill", messages, tier=self._tier, tools=tools, keep_message=True)
            return _said(reply)
        voice, answered = self._voice(), False
        try:
            reply = await models.spoken("skill", messages, tier=self._tier, tools=tools, said=voice.say)
            answered = not self._turns.calls_of(_said(reply))
        finally:
            await voice.end(answered=answered)
        return _said(reply)

    def _voice(self) -> Voice:
        return Voice(self._run, self._step.id, self._attempt, self._tier)

    @property
    def _tier(self) -> Tier:
        return self._skill.tier or "fast"

    @property
    def _answers(self) -> bool:
        """Whether the skill's words are the answer, to be shown as they come: in a room that is its own, where nothing
        writes another one, and nothing is looked at as a whole first."""
        run, plan = self._run, self._run.state.plan
        if run.room.skill != self._step.tool or plan is None or any(step.is_completion for step in plan.steps):
            return False
        understood = run.state.understood
        return not run.room.guard_output.whole and not (understood is not None and understood.translated)

    async def _by_rules(self, args: JsonObject, reason: str | None) -> StepOutput:
        tainted = self._turns.tainted
        tools = tools_by_rules(self._run, self._skill)
        # Tools that stand in for a model look up themselves what else is known.
        task = str(args.get("task") or "") if self._skill.rules_tools else args_text(args)
        output = await run_by_rules(self._run, self._step, self._attempt, tools, task, tainted=tainted)
        return output.model_copy(update={"effective": "rules", "fallback_reason": reason})

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

    def _site(self, number: int) -> CallSite:
        return CallSite(self._step.id, self._attempt, number)

    def _recorded_turns(self) -> tuple[AssistantTurn, ...]:
        attempt = self._run.state.step(self._step.id).attempt(self._attempt)
        return attempt.turns if attempt else ()


def _said(reply: ModelReply) -> AssistantTurn:
    calls = tuple({"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls)
    return AssistantTurn(text=reply.text, tool_calls=calls)


def scoped_tools(run: Run, skill: Skill) -> dict[str, Tool]:
    """The tools a skill may call here: what it declares, within what the room and the caller allow, and its files."""
    available = allowed_tools(run)
    tools: dict[str, Tool] = {name: run.engine.registry.get(name) for name in skill.scope(available)}
    if skill.files():
        tools["read_skill_file"] = SkillFileTool(skill)
    return tools


def tools_by_rules(run: Run, skill: Skill) -> dict[str, Tool]:
    """The tools that rules may call here in place of a skill."""
    return {name: run.engine.registry.get(name) for name in skill.scope_by_rules(allowed_tools(run))}


def allowed_tools(run: Run) -> list[str]:
    """Names of the registered tools the room and the caller's `metadata.tools` allow. Where neither names any, those
    that are to be had by name only are left out, but for those the caller asks for in `metadata.tool_calls`."""
    specs = run.engine.registry.specs(run.room.tools)
    wanted = run.state.request.metadata.get("tools")
    if isinstance(wanted, list):
        return [spec.name for spec in specs if spec.name in wanted]
    if run.room.tools is not None:
        return [spec.name for spec in specs]
    asked = run.state.request.metadata.get("tool_calls")
    calls = asked if isinstance(asked, list) else []
    called = [call.get("tool", call.get("name")) for call in calls if isinstance(call, dict)]
    return [spec.name for spec in specs if not spec.by_name or spec.name in called]
