"""`SkillExecutor`: a model follows the skill's body and may call only the tools in the skill's scope.

The number of turns is limited. Every turn is in the log, so an interrupted skill resumes at its turn. A call outside
the scope is refused and recorded; the refusal is the call's result.
"""

import asyncio

from agent.answers.unwrapping import remove_markdown_fence
from agent.core.errors import ModelError, ModelNotConfiguredError, SkillTurnsError
from agent.core.events import AssistantTurn, StepOutput
from agent.core.models import JsonObject, PlanStep, Tier
from agent.core.plan_outcome import is_answer_step
from agent.execution.nested_calls import list_step_tools
from agent.execution.rules_skill import run_by_rules
from agent.execution.skill_files import SkillFileTool
from agent.execution.tool_turns import ToolTurns, build_assistant_message
from agent.llm.port import read_end
from agent.llm.prompts import format_block, render
from agent.run_context.answer_stream import SkillReplyStream
from agent.run_context.calls import CallSite
from agent.run_context.model_calls import MeteredModels, ModelCall, to_assistant_turn
from agent.run_context.outputs import SKILL_CHARS, format_args, format_data_block
from agent.run_context.run import Run
from agent.skills import Skill
from agent.tools import Tool


class SkillExecutor:
    """Executes one attempt of a skill step."""

    def __init__(self, run: Run, step: PlanStep, attempt: int) -> None:
        self._run = run
        self._step = step
        self._attempt = attempt
        self._skill: Skill = run.engine.skills.get(step.tool)
        self._tools = list_scoped_tools(run, self._skill, step)
        self._turns = ToolTurns(run, self._tools, self._make_call_site, caller_kind="skill", tainted=False)

    async def execute(
        self, args: JsonObject, read_args: JsonObject, feedback: str | None, *, tainted: bool
    ) -> StepOutput:
        """The skill's final text. `read_args` are the arguments as a model reads them, `args` as rules do.

        Raises `SkillTurnsError`, `ModelOutputError` and `BudgetError`. If no model is reachable, calls the skill's
        tools by rules, and the output records why.
        """
        self._turns.tainted = tainted
        if not self._run.works_with_model:
            if self._run.room.requires_model:
                raise ModelNotConfiguredError(
                    f"the room {self._run.room.id!r} needs a model, and none is available: "
                    "set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST, or let rules take over "
                    "(AGENT_CONVERSATIONS_REQUIRE_LLM=false), which understand exact commands only",
                    agent_id=self._skill.name,
                )
            return await self._run_by_rules(args, None if self._run.is_rules_mode else "no model is configured")
        try:
            reply = await self._run_turns(read_args, feedback)
        except ModelError as error:
            if error.code == "ERR_MODEL_OUTPUT" or self._run.room.requires_model:
                raise
            return await self._run_by_rules(args, error.message)
        text, end = remove_markdown_fence(reply.text), read_end(reply.finish_reason)
        return StepOutput(
            value=text,
            text=text,
            tainted=self._turns.tainted,
            sources=tuple(dict.fromkeys(self._turns.sources)),
            finish_reason="stop" if end.is_whole else end.finish_reason,
            interruption=end.interruption,
        )

    async def _run_turns(self, args: JsonObject, feedback: str | None) -> AssistantTurn:
        """Runs the loop: asks the model and executes its tool calls, until the model answers in text."""
        messages = [await asyncio.to_thread(self._build_system_message, args), self._build_task_message(args, feedback)]
        recorded = list(self._list_recorded_turns())
        models = MeteredModels(self._run, self._step.id, self._attempt)
        wire = tuple(tool.spec.to_openai() for tool in self._tools.values())
        for turn in range(self._skill.max_turns):
            last = turn == self._skill.max_turns - 1
            if turn < len(recorded):
                reply = recorded[turn]
            else:
                reply = await self._ask_model(models, tuple(messages), () if last else wire)
            calls = self._turns.parse_calls(reply)
            if not calls:
                if turn < len(recorded) and self._is_answer:  # a crashed process may have streamed a part of it
                    await self._make_reply_stream().discard("the answer is repeated from the log")
                return reply
            messages.append(build_assistant_message(reply, calls))
            messages += await self._turns.execute_calls(calls)
        raise SkillTurnsError(
            f"skill {self._skill.name!r} used its {self._skill.max_turns} turns without an answer",
            agent_id=self._skill.name,
        )

    async def _ask_model(
        self, models: MeteredModels, messages: tuple[JsonObject, ...], tools: tuple[JsonObject, ...]
    ) -> AssistantTurn:
        """The model's next turn. Streams it if it may be the run's answer."""
        call = ModelCall("skill", messages, tier=self._tier, tools=tools)
        if not self._is_answer:
            return to_assistant_turn(await models.complete(call, keep_message=True))
        reply_stream, answered = self._make_reply_stream(), False
        try:
            reply = await models.complete_streaming(call, on_chunk=reply_stream.write)
            answered = not self._turns.parse_calls(to_assistant_turn(reply))
        finally:
            await reply_stream.end(answered=answered)
        return to_assistant_turn(reply)

    def _make_reply_stream(self) -> SkillReplyStream:
        return SkillReplyStream(self._run, self._step.id, self._attempt, self._tier)

    @property
    def _tier(self) -> Tier:
        """The skill's own tier; of one that writes the answer, at least the tier that the answer is due."""
        tiers = (self._step.tier, self._run.room.answer_tier)
        if is_answer_step(self._run.state, self._step) and "high" in tiers:
            return "high"
        return self._skill.tier or "fast"

    @property
    def _is_answer(self) -> bool:
        """Whether the skill's text is the answer and may be streamed.

        It is in the skill's own room, if no completion follows and no stage checks or translates the whole answer.
        """
        run, plan = self._run, self._run.state.plan
        if run.room.skill != self._step.tool or plan is None or any(step.is_completion for step in plan.steps):
            return False
        understood = run.state.understanding
        return not run.room.guard_output.requires_whole_answer and not (
            understood is not None and understood.translated
        )

    async def _run_by_rules(self, args: JsonObject, reason: str | None) -> StepOutput:
        tainted = self._turns.tainted
        tools = list_scoped_tools_by_rules(self._run, self._skill, self._step)
        # Rules read only the task; tools that work without a model look up further facts themselves.
        task = str(args.get("task") or "")
        output = await run_by_rules(self._run, self._step, self._attempt, tools, task, tainted=tainted)
        return output.model_copy(update={"effective": "rules", "fallback_reason": reason})

    def _build_system_message(self, args: JsonObject) -> JsonObject:
        room, skill = self._run.room, self._skill
        system = room.system_prompt + "\n\n" if room.system_prompt else ""
        files = skill.list_files()
        instructions = skill.render_instructions(str(args.get("task", "")))
        if files:
            instructions += "\n\nFiles of this skill (read with read_skill_file): " + ", ".join(files[:50])
        content = render("skill", system=system, name=skill.name, instructions=instructions)
        return {"role": "system", "content": content}

    def _build_task_message(self, args: JsonObject, feedback: str | None) -> JsonObject:
        task = str(args.get("task") or self._step.intent)
        others = {key: value for key, value in args.items() if key != "task"}
        inputs = (
            format_data_block("data", format_args(others), limit=SKILL_CHARS, name="inputs") + "\n" if others else ""
        )
        feedback_note = (
            f"\nAn earlier attempt was not accepted:\n{format_block('feedback', feedback)}\nDo it better this time."
            if feedback
            else ""
        )
        content = render(
            "skill_task", task=format_data_block("task", task, limit=SKILL_CHARS), inputs=inputs, feedback=feedback_note
        )
        return {"role": "user", "content": content.strip()}

    def _make_call_site(self, number: int) -> CallSite:
        return CallSite(self._step.id, self._attempt, number)

    def _list_recorded_turns(self) -> tuple[AssistantTurn, ...]:
        attempt = self._run.state.get_step(self._step.id).find_attempt(self._attempt)
        return attempt.turns if attempt else ()


def list_scoped_tools(run: Run, skill: Skill, step: PlanStep) -> dict[str, Tool]:
    """The tools that a skill may call in a step, and its file reader."""
    available = run.allowed_tools
    named = list_step_tools(run, step, available)
    tools: dict[str, Tool] = {
        name: run.engine.registry.get(name) for name in skill.select_tools(available) if name in named
    }
    if skill.list_files():
        tools["read_skill_file"] = SkillFileTool(skill)
    return tools


def list_scoped_tools_by_rules(run: Run, skill: Skill, step: PlanStep) -> dict[str, Tool]:
    """The tools that rules may call for a skill: those of the step, and those the skill names for rules."""
    available = run.allowed_tools
    named = list_step_tools(run, step, available).union(skill.rules_tools)
    return {name: run.engine.registry.get(name) for name in skill.select_rules_tools(available) if name in named}
