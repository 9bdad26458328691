"""`NestedCalls`: calls of other tools within the call of a tool that is built on them.

The outer call has the worst effect class of the tools that it may call, so that a person was asked about it, and a
crash in between is reported as that of the outer call. Its result is redacted, and tainted if theirs may be. Nobody can
be asked about a nested call, so none changes anything, and no address is fetched, with what the same call has read.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from agent.core.errors import AgentError, ToolDeniedError, ToolInputError
from agent.core.events import ToolReturned
from agent.core.models import JsonObject, PlanStep
from agent.execution.arguments import find_argument_problem
from agent.execution.egress_facts import find_egress_problem, make_nested_read
from agent.policy.guardrails.egress import ReadText
from agent.policy.redaction.inbound import restore_args
from agent.run_context.calls import CallSite
from agent.run_context.message_labels import collect_own_words
from agent.run_context.run import Run
from agent.tools import ToolContext, ToolResult, is_shown_call_by_call
from agent.tools.catalogue import is_foreign


@dataclass(frozen=True, slots=True)
class NestedCalls:
    """Implements `CallOtherTool` for the tool that is called at `site` with the idempotency key `key`."""

    run: Run
    site: CallSite
    key: str
    build_context: Callable[..., ToolContext]
    """Builds the context of a nested call from its `idempotency_key`."""
    reads: list[ReadText] = field(default_factory=list)
    """What the nested calls have read. The log has only the outer call."""

    async def __call__(self, name: str, args: JsonObject, suffix: str = "") -> ToolResult:
        """See `CallOtherTool`."""
        registry = self.run.engine.registry
        if name not in list_parent_tools(self.run, self.site) or name not in registry:
            raise ToolDeniedError(f"{name!r} is not allowed in this run", agent_id=name)
        tool = registry.get(name)
        if is_shown_call_by_call(tool):
            raise ToolDeniedError(f"{name!r} shows a person what it does: call it in a step of its own", agent_id=name)
        problem = find_argument_problem(tool.spec, args)
        if problem is not None:
            raise ToolInputError(problem, agent_id=name)
        has_read = any(read.is_untrusted for read in self.reads)
        if has_read and tool.spec.has_side_effect and not await asyncio.to_thread(self._holds, args):
            reason = f"{name!r} would change something with values that were read, or made, within this call"
            raise ToolDeniedError(f"{reason}. Call it in a step of its own", agent_id=name)
        inner = self.build_context(idempotency_key=f"{self.key}{suffix}")
        inner = replace(inner, tainted=True) if has_read else inner
        inner.report_progress(f"calls {name}")
        egress = None
        if tool.spec.reads_over_network:
            egress = await find_egress_problem(self.run, tool.spec, args, self.site, self.reads)
        if egress is not None:
            reason = f"{name!r} would send {egress.target[:200]!r}: {egress.reason}. Call it in a step of its own"
            raise ToolDeniedError(reason, agent_id=name)
        try:
            result = await tool.call(args, inner)
        except AgentError as error:  # a foreign server writes its own, and the caller can read them
            tainted = tool.spec.tainted or is_foreign(tool.spec)
            self.reads.append(make_nested_read(tool.spec, args, error.message, tainted=tainted))
            raise
        tainted = tool.spec.tainted or result.tainted
        self.reads.append(make_nested_read(tool.spec, args, result.text, tainted=tainted))
        return result

    def note_read(self, text: str, is_private: bool) -> None:
        """Notes what the tool has read without another tool: a file, or a page."""
        self.reads.append(ReadText(text, is_private=is_private))

    def mark(self, returned: ToolReturned) -> ToolReturned:
        """What the outer call returned, as text from outside if it has read such."""
        if returned.tainted or not any(read.is_untrusted for read in self.reads):
            return returned
        marked = returned.model_copy(update={"tainted": True})
        return marked if marked.error is not None else self.run.redaction.mark_redacted(marked)

    def _holds(self, args: JsonObject) -> bool:
        """Whether each value is the user's, or one of the outer call, which a person could have been asked about."""
        outer = self._list_outer_values()
        words = collect_own_words(self.run)
        return all(value in outer or words.hold(value) for value in args.values())

    def _list_outer_values(self) -> list[JsonValue]:
        """The arguments of the outer call."""
        state = self.run.state
        attempt = state.get_step(self.site.step_id).find_attempt(self.site.attempt)
        call = attempt.find_call(self.site.call_id) if attempt is not None else None
        return [*restore_args(state, call.intent.args).values()] if call is not None else []


def list_parent_tools(run: Run, site: CallSite) -> frozenset[str]:
    """The names of the tools that the caller at `site` has.

    A sub-agent has its own tools, a skill those of its scope, a plan those of the room.
    """
    parent = run.state.subagents.get(site.span)
    if parent is not None:
        return frozenset(parent.start.tools)
    available = run.allowed_tools
    step = next((one for one in run.state.plan_steps if one.id == site.step_id), None)
    if step is not None and step.action == "skill":
        return list_step_tools(run, step, available)
    return frozenset(available)


def list_step_tools(run: Run, step: PlanStep, available: Collection[str]) -> frozenset[str]:
    """The names of the tools that a skill step may call.

    Those are the tools that the step names, out of its skill's. A step that names none gets the tools that read without
    the network; each of the skill's effects is asked about.
    """
    allowed = run.engine.skills.get(step.tool).select_tools(available)
    if step.tools is not None:
        return frozenset(allowed) & frozenset(step.tools)
    registry = run.engine.registry
    return frozenset(name for name in allowed if not registry.get(name).spec.reads_over_network)
