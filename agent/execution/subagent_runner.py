"""`SubAgentRunner`: starts sub-agents within a run, for the tools that the tool gateway calls.

A sub-agent has its own tools and may borrow read-only tools of its parent. The room limits depth and number. Its work
counts against the parent's budgets, see `subagent_work.py`.
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
from agent.core.subagent_result import SubAgentResult
from agent.core.value_faults import describe_first_fault
from agent.execution.nested_calls import list_parent_tools
from agent.execution.subagent_work import SubAgentWork
from agent.run_context.calls import CallSite
from agent.run_context.outputs import shorten_args
from agent.run_context.run import Run
from agent.subagents import Caller, RegisteredSubAgent, SubAgent, SubAgentClass, index_subagents
from agent.tools import SubAgentSpawner, Tool


class SubAgentRunner:
    """Holds the sub-agents of this process. Implements `SubAgentSpawners`."""

    def __init__(self, registered: Iterable[RegisteredSubAgent]) -> None:
        self.kinds = index_subagents(registered)

    def find_spawner(self, run: Run, site: CallSite, *, tainted: bool) -> SubAgentSpawner:
        """See `SubAgentSpawners.find_spawner`."""
        return CallSpawner(self, run, site, tainted=tainted)


@dataclass(frozen=True, slots=True)
class _GrantedTools:
    """The tools that a sub-agent gets, and the names of the withheld ones."""

    tools: dict[str, Tool]
    withheld: tuple[str, ...]


class CallSpawner:
    """Starts sub-agents within one call. Implements `SubAgentSpawner`."""

    def __init__(self, runner: SubAgentRunner, run: Run, site: CallSite, *, tainted: bool) -> None:
        self._runner = runner
        self._run = run
        self._site = site
        self._tainted = tainted
        self._used_spans: set[str] = set()

    def list_started_tasks(self, agent_id: str) -> list[JsonObject]:
        """See `SubAgentSpawner.list_started_tasks`."""
        spans = ((span, self._run.state.subagents.get(span)) for span in self._iter_spans())
        started = itertools.takewhile(lambda one: one[1] is not None, spans)
        return [one.start.task for _, one in started if one is not None and one.start.agent_id == agent_id]

    async def spawn(self, agent_id: str, task: JsonObject) -> SubAgentResult:
        """See `SubAgentSpawner.spawn`."""
        span = self._choose_span(agent_id, task)
        self._used_spans.add(span)
        subagent = self._run.state.subagents.get(span)
        if subagent is not None and subagent.end is not None:
            return await self._read_recorded_result(subagent.end)
        registered = self._runner.kinds.get(agent_id)
        if registered is None:
            names = ", ".join(self._runner.kinds) or "none"
            raise ToolInputError(f"there is no sub-agent {agent_id!r}; there are {names}", agent_id=agent_id)
        if subagent is None:
            self._check_limits(agent_id)
        kind = registered.kind
        agent = self._create_agent(registered, task)
        # Each reads the room's instructions.
        tainted = self._tainted or self._run.room.from_outside
        tainted = tainted or (kind.READS_HISTORY and self._is_history_from_outside())
        try:
            tools = await self._prepare(kind, agent, span, task, is_new=subagent is None, tainted=tainted)
            work = SubAgentWork(self._run, self._site, span, agent, tools, tainted=tainted)
            return await self._read_recorded_result(await work.run_to_end())
        finally:
            await agent.aclose()

    def _choose_span(self, agent_id: str, task: JsonObject) -> str:
        """The span of a sub-agent: its span from before a crash, else the next free one.

        The same agent and task reuse a span. The order of starts is not a key, because a repeated call skips the
        sub-agents whose results it already has.
        """
        short_task = shorten_args(task)
        for span in self._iter_spans():
            subagent = self._run.state.subagents.get(span)
            if span in self._used_spans:
                continue
            if subagent is None or (subagent.start.agent_id, subagent.start.task) == (agent_id, short_task):
                return span
        raise AssertionError("the places do not end")

    def _iter_spans(self) -> Iterator[str]:
        """Yields the spans for the sub-agents of this call, in order."""
        yield self._site.call_id
        yield from (f"{self._site.call_id}~{number}" for number in itertools.count(2))

    def _create_agent(self, registered: RegisteredSubAgent, task: JsonObject) -> SubAgent[Any, Any]:
        kind = registered.kind
        wanted: type[BaseModel] = kind.Task
        try:
            parsed = wanted.model_validate(task)
        except ValidationError as error:
            raise ToolInputError(f"{kind.AGENT_ID}: {describe_first_fault(error)}", agent_id=kind.AGENT_ID) from error
        state = self._run.state
        history = state.retrieval.history if kind.READS_HISTORY and state.retrieval is not None else ()
        return kind(parsed, Caller(state.owner, state.request.conversation_id, history), registered.resources)

    def _is_history_from_outside(self) -> bool:
        """Whether the messages before the request hold text that is not the user's, nor an answer of ours without such.

        The labels of a client's messages say so; a stored conversation has tainted the call already.
        """
        state = self._run.state
        return state.has_outside_text or state.has_unknown_answers

    async def _prepare(
        self,
        kind: SubAgentClass,
        agent: SubAgent[Any, Any],
        span: str,
        task: JsonObject,
        *,
        is_new: bool,
        tainted: bool,
    ) -> Mapping[str, Tool]:
        """Prepares the sub-agent, records its start and returns its tools.

        It counts against the room's limit from now on, because other sub-agents may start during the preparation.
        """
        self._run.subagents_starting += is_new
        try:
            try:
                await agent.prepare()
            except AgentError as error:
                if error.kind.http_status >= 500:
                    raise SubAgentFailedError(kind.AGENT_ID, error.message) from error
                raise ToolInputError(f"{kind.AGENT_ID}: {error.message}", agent_id=kind.AGENT_ID) from error
            granted = self._grant_tools(kind, agent.make_tools())
            agent.granted = granted.tools
            if is_new:
                await self._emit_started(kind, span, task, granted, tainted=tainted)
            return granted.tools
        finally:
            self._run.subagents_starting -= is_new

    def _check_limits(self, agent_id: str) -> None:
        """Raises `ToolDeniedError` if the room allows no more sub-agents, or no sub-agents at this depth."""
        room = self._run.room
        if self._depth > room.subagent_depth:
            raise ToolDeniedError(
                f"sub-agents may be started {room.subagent_depth} deep in this room (`subagent_depth`); do the work "
                "yourself",
                agent_id=agent_id,
            )
        if len(self._run.state.subagents) + self._run.subagents_starting >= room.budgets.max_subagents:
            raise ToolDeniedError(
                f"the run has started its {room.budgets.max_subagents} sub-agents (`max_subagents`); go on with what "
                "they found",
                agent_id=agent_id,
            )

    @property
    def _depth(self) -> int:
        """The depth of a sub-agent that starts here; 1 if a skill or a plan starts it."""
        parent = self._run.state.subagents.get(self._site.span)
        return parent.start.depth + 1 if parent is not None else 1

    def _grant_tools(self, kind: SubAgentClass, own: Iterable[Tool]) -> _GrantedTools:
        """The sub-agent's own tools and its parent's tools that it may borrow."""
        tools = {tool.spec.name: tool for tool in own}
        for tool in tools.values():
            if tool.spec.effect != "read":
                raise ValueError(f"{tool.spec.name} of {kind.AGENT_ID} changes something; sub-agents only read")
        registry = self._run.engine.registry
        parents = list_parent_tools(self._run, self._site)
        deepest = self._depth >= self._run.room.subagent_depth
        withheld = []
        for name in kind.BORROWS:
            spec = registry.find_spec(name) if name in parents else None
            if spec is None or (spec.effect != "read" and not kind.CHANGES_THINGS) or (spec.uses_subagents and deepest):
                withheld.append(name)
            else:
                tools.setdefault(name, registry.get(name))
        return _GrantedTools(tools, tuple(withheld))

    async def _emit_started(
        self, kind: SubAgentClass, span: str, task: JsonObject, granted: _GrantedTools, *, tainted: bool
    ) -> None:
        started = SubAgentStarted(
            agent_id=kind.AGENT_ID,
            span=span,
            parent=self._site.span,
            depth=self._depth,
            task=shorten_args(task),
            tools=tuple(granted.tools),
            withheld=granted.withheld,
            max_turns=kind.MAX_TURNS,
            timeout_s=kind.TIMEOUT_SECONDS,
            tainted=tainted,
        )
        await self._run.emit(started, step_id=self._site.step_id, attempt=self._site.attempt)

    async def _read_recorded_result(self, finished: SubAgentFinished) -> SubAgentResult:
        """The recorded result. Raises `SubAgentFailedError` if the sub-agent failed."""
        result = finished.result
        if finished.blob is not None:
            data = json.loads(await self._run.journal.get_blob(finished.blob))
            result = result.model_copy(update={"data": data})
        if finished.outcome == "failed":
            raise SubAgentFailedError(finished.agent_id, result.summary, result.data)
        return result
