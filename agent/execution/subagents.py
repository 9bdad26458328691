"""Who starts sub-agents within a run: `SubAgentStaff` is what the tool gateway hands to the tools it calls.

A sub-agent gets its own tools and, of those it would borrow, the ones its parent has and that only read. How deep and
how many there may be is the room's word. It works on the parent's budgets, see `subagent_work.py`.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from agent.core.errors import AgentError, SubAgentFailedError, ToolDeniedError, ToolInputError
from agent.core.events import SubAgentFinished, SubAgentStarted
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult
from agent.execution.outputs import shown_args
from agent.execution.run import Run
from agent.execution.site import CallSite
from agent.execution.skill_executor import allowed_tools
from agent.execution.subagent_work import SubAgentWork
from agent.subagents.base import Caller, Materials, SubAgent
from agent.subagents.registry import SUBAGENTS, Kind, by_id
from agent.tools import Spawner, Tool


class SubAgentStaff:
    """The sub-agents of this process. Implements `SubAgents`."""

    def __init__(self, materials: Materials, kinds: Iterable[Kind] = SUBAGENTS) -> None:
        self.materials = materials
        self.kinds = by_id(kinds)

    def at(self, run: Run, site: CallSite, *, tainted: bool) -> Spawner:
        """See `SubAgents.at`."""
        return CallSpawner(self, run, site, tainted=tainted)


@dataclass(frozen=True, slots=True)
class _Hire:
    """What a sub-agent is given."""

    tools: dict[str, Tool]
    withheld: tuple[str, ...]


class CallSpawner:
    """Starts sub-agents within one call. Implements `Spawner`."""

    def __init__(self, staff: SubAgentStaff, run: Run, site: CallSite, *, tainted: bool) -> None:
        self._staff = staff
        self._run = run
        self._site = site
        self._tainted = tainted
        self._given: set[str] = set()

    def begun(self, agent_id: str) -> list[JsonObject]:
        """See `Spawner.begun`."""
        known = ((span, self._run.state.subagents.get(span)) for span in self._places())
        there = itertools.takewhile(lambda one: one[1] is not None, known)
        return [one.started.task for _, one in there if one is not None and one.started.agent_id == agent_id]

    async def spawn(self, agent_id: str, task: JsonObject) -> SubAgentResult:
        """See `Spawner.spawn`."""
        span = self._place(agent_id, task)
        self._given.add(span)
        known = self._run.state.subagents.get(span)
        if known is not None and known.finished is not None:
            return await self._again(known.finished)
        kind = self._staff.kinds.get(agent_id)
        if kind is None:
            there = ", ".join(self._staff.kinds) or "none"
            raise ToolInputError(f"there is no sub-agent {agent_id!r}; there are {there}", agent_id=agent_id)
        if known is None:
            self._admit(agent_id)
        agent = self._made(kind, task)
        try:
            tools = await self._begun(kind, agent, span, task, is_new=known is None)
            work = SubAgentWork(self._run, self._site, span, agent, tools, tainted=self._tainted)
            return await self._again(await work.carry_out())
        finally:
            await agent.aclose()

    def _place(self, agent_id: str, task: JsonObject) -> str:
        """The span of a sub-agent: where this call began the same one for the same task, before a crash, that one's;
        else the next that is free. The order alone will not do: a tool that is called again knows by now what some of
        them found, and starts only the others."""
        shown = shown_args(task)
        for span in self._places():
            known = self._run.state.subagents.get(span)
            if span in self._given:
                continue
            if known is None or (known.started.agent_id, known.started.task) == (agent_id, shown):
                return span
        raise AssertionError("the places do not end")

    def _places(self) -> Iterator[str]:
        """The spans of the sub-agents of this call, the first one's first."""
        yield self._site.call_id
        yield from (f"{self._site.call_id}~{number}" for number in itertools.count(2))

    def _made(self, kind: Kind, task: JsonObject) -> SubAgent[Any, Any]:
        wanted: type[BaseModel] = kind.Task
        try:
            parsed = wanted.model_validate(task)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(str(part) for part in fault["loc"])
            raise ToolInputError(f"{kind.AGENT_ID}: {where}: {fault['msg']}", agent_id=kind.AGENT_ID) from error
        state = self._run.state
        return kind(parsed, Caller(state.owner, state.request.conversation_id), self._staff.materials)

    async def _begun(
        self, kind: Kind, agent: SubAgent[Any, Any], span: str, task: JsonObject, *, is_new: bool
    ) -> Mapping[str, Tool]:
        """The tools it gets, once it is ready and its start is in the log. It counts from now on: others may begin
        while it gets ready."""
        self._run.subagents_beginning += is_new
        try:
            try:
                await agent.prepare()
            except AgentError as error:
                if error.kind.http_status >= 500:
                    raise SubAgentFailedError(kind.AGENT_ID, error.message) from error
                raise ToolInputError(f"{kind.AGENT_ID}: {error.message}", agent_id=kind.AGENT_ID) from error
            hire = self._hire(kind, agent.tools())
            if is_new:
                await self._started(kind, span, task, hire)
            return hire.tools
        finally:
            self._run.subagents_beginning -= is_new

    def _admit(self, agent_id: str) -> None:
        """Raise `ToolDeniedError` where the room allows no more sub-agents, or none here."""
        room = self._run.room
        if self._depth > room.subagent_depth:
            raise ToolDeniedError(
                f"sub-agents may be started {room.subagent_depth} deep in this room (`subagent_depth`); do the work "
                "yourself",
                agent_id=agent_id,
            )
        if len(self._run.state.subagents) + self._run.subagents_beginning >= room.budgets.max_subagents:
            raise ToolDeniedError(
                f"the run has started its {room.budgets.max_subagents} sub-agents (`max_subagents`); go on with what "
                "they found",
                agent_id=agent_id,
            )

    @property
    def _depth(self) -> int:
        """How deep a sub-agent started here is; 1 for one that a skill or a plan starts."""
        parent = self._run.state.subagents.get(self._site.span)
        return parent.started.depth + 1 if parent is not None else 1

    def _hire(self, kind: Kind, own: Iterable[Tool]) -> _Hire:
        """Its own tools, and of those it borrows the ones its parent has. Nothing that changes anything."""
        tools = {tool.spec.name: tool for tool in own}
        for tool in tools.values():
            if tool.spec.effect != "read":
                raise ValueError(f"{tool.spec.name} of {kind.AGENT_ID} changes something; sub-agents only read")
        registry = self._run.engine.registry
        parents = parent_tools(self._run, self._site)
        deepest = self._depth >= self._run.room.subagent_depth
        withheld = []
        for name in kind.BORROWS:
            spec = registry.get(name).spec if name in registry and name in parents else None
            if spec is None or spec.effect != "read" or (spec.spawns and deepest):
                withheld.append(name)
            else:
                tools.setdefault(name, registry.get(name))
        return _Hire(tools, tuple(withheld))

    async def _started(self, kind: Kind, span: str, task: JsonObject, hire: _Hire) -> None:
        started = SubAgentStarted(
            agent_id=kind.AGENT_ID,
            span=span,
            parent=self._site.span,
            depth=self._depth,
            task=shown_args(task),
            tools=tuple(hire.tools),
            withheld=hire.withheld,
            max_turns=kind.MAX_TURNS,
            timeout_s=kind.TIMEOUT_SECONDS,
            tainted=self._tainted,
        )
        await self._run.emit(started, step_id=self._site.step_id, attempt=self._site.attempt)

    async def _again(self, finished: SubAgentFinished) -> SubAgentResult:
        """The result as the log has it. Raises `SubAgentFailedError` for one that failed."""
        result = finished.result
        if finished.blob is not None:
            data = json.loads(await self._run.engine.journal.get_blob(finished.blob))
            result = result.model_copy(update={"data": data})
        if finished.outcome == "failed":
            raise SubAgentFailedError(finished.agent_id, result.summary, result.data)
        return result


def parent_tools(run: Run, site: CallSite) -> frozenset[str]:
    """The names of the tools that whoever calls at `site` has: a sub-agent its own, a skill those of its scope, a plan
    those of the room."""
    parent = run.state.subagents.get(site.span)
    if parent is not None:
        return frozenset(parent.started.tools)
    available = allowed_tools(run)
    steps = run.state.plan.steps if run.state.plan else ()
    step = next((one for one in steps if one.id == site.step_id), None)
    if step is not None and step.action == "skill":
        return frozenset(run.engine.skills.get(step.tool).scope(available))
    return frozenset(available)
