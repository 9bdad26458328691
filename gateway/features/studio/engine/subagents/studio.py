"""The studio's sub-agents: each handles one kind of intent with its own tools. The router starts them.

They change things, so that their calls wait for a person as the room's policy says. What they know of the conversation
is its history; what they did is taken from their calls, never from the model's words.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from agent.core.errors import ToolDeniedError
from agent.core.events import StepOutput
from agent.core.models import DeferredModel, IntentCategory, JsonObject
from agent.core.subagent_result import SubAgentResult, Uncertainty, Undone
from agent.execution.arguments import find_argument_problem, parse_text_args
from agent.llm.prompts import format_block
from agent.subagents.base import Caller, OpeningCall, SubAgent, SubAgentResources, ToolCalls
from agent.tools import Tool, ToolSpec
from gateway.features.studio.engine.prompts import PROMPTS

HISTORY_MESSAGES, MESSAGE_CHARS = 12, 3_000
"""Messages of the conversation that a sub-agent sees, and characters of each."""
RESULT_CHARS = 4_000
REFUSED_STAGE = "approve"
"""The stage of a call to which a person said no."""


class StudioTask(DeferredModel):
    """A request to the studio, as its router read it."""

    request: str = Field(min_length=1, description="what to do, completely, in the user's words")
    action: str = Field(default="", description="a tool's name where one call does it all, else a verb")
    entities: dict[str, str] = Field(default_factory=dict, description="names and values of the request")
    before: list[str] = Field(default_factory=list, description="results of the tasks before this one")


class StudioFinal(DeferredModel):
    """The sub-agent's last word: an answer, or a question that only the user can answer."""

    answer: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that returned."""

    tool: str
    output: StepOutput


class StudioAgent(SubAgent[StudioTask, StudioFinal]):
    """The base class. A subclass names its category, its tools and where people find the same without a model."""

    CATEGORY: ClassVar[IntentCategory]
    HANDLES: ClassVar[str]
    """The subject of its category, for the router's prompt."""
    DOORS: ClassVar[str]
    """The commands and addresses that do the same without a model."""
    PROMPT = "subagent_studio"
    PROMPTS = PROMPTS
    MAX_TURNS = 20
    TIMEOUT_SECONDS = 300
    CHANGES_THINGS = True
    READS_HISTORY = True
    IS_ANSWER = True
    Task = StudioTask
    Final = StudioFinal

    def __init__(self, task: StudioTask, caller: Caller, resources: SubAgentResources) -> None:
        super().__init__(task, caller, resources)
        self._done: list[_Call] = []

    def make_tools(self) -> Sequence[Tool]:
        """Empty: all tools are those of the room."""
        return ()

    def build_first_message(self) -> str:
        """The conversation so far, the results of earlier tasks, and the request."""
        spoken = [one for one in self.caller.history if one.role in ("user", "assistant") and one.content]
        parts = []
        if spoken:
            lines = [f"{one.role}: {_cut(one.content, MESSAGE_CHARS)}" for one in spoken[-HISTORY_MESSAGES:]]
            parts.append(format_block("history", "\n".join(lines)))
        if self.task.before:
            parts.append(format_block("results", "\n".join(_cut(text, RESULT_CHARS) for text in self.task.before)))
        read = [f"{name}: {value}" for name, value in self.task.entities.items()]
        parts.append(format_block("intent", "\n".join([f"{self.CATEGORY}: {self.task.action}", *read])))
        parts.append(format_block("user_request", self.task.request))
        return "\n".join(parts)

    def build_opening_call(self) -> OpeningCall | None:
        """The call that the router named, if it named a tool. One call then does it all, without a model."""
        return OpeningCall(self.task.action, self.task.entities) if self.task.action in self.granted else None

    def conclude_opening(self) -> SubAgentResult | None:
        """The result of that call; None if it failed, so that the model decides what to do."""
        if any(done.output.error_code is not None for done in self._done) or not self._done:
            return None
        return self._build_result(self._done[-1].output.text)

    def record_call(self, tool: str, args: JsonObject, output: StepOutput) -> None:
        """Records every call, failed ones too."""
        self._done.append(_Call(tool, output))

    def read_prose(self, text: str) -> StudioFinal | None:
        """Takes prose without any JSON as the answer: small models forget the form."""
        return StudioFinal(answer=text.strip()) if text.strip() and "{" not in text else None

    def build_partial_data(self) -> JsonObject:
        """The changes so far."""
        changes = [f"{one.tool}: {_cut(one.output.text, 300)}" for one in self._list_changes()]
        return {"intent": self.CATEGORY, "changes": [*changes]}

    async def conclude(self, final: StudioFinal, calls: ToolCalls) -> SubAgentResult:
        """The answer or the question. An answer about what failed, or was never tried, begins with that."""
        answer, question = final.answer.strip(), final.question.strip()
        undone = self._find_undone(answer, question)
        if undone is not None:
            is_change = self.CHANGES_THINGS or self._list_returned()
            nothing = "Nothing was changed" if is_change else "Nothing was looked up"
            beginning = "Not done" if self._list_changes() else nothing
            answer = f"{beginning}: {undone.reason}\n\n{answer}".strip()
        if not answer and not question:
            return self._build_result(self._list_returned()[-1].output.text)
        return self._build_result("\n\n".join(part for part in (answer, question) if part), question, undone)

    def _find_undone(self, answer: str, question: str) -> Undone | None:
        """The newest change that was tried and not made. For an end with neither a change nor a question: that no tool
        was called for the request, or why the look-up failed.
        """
        failed = self._list_failed_changes()
        if not failed:
            if question or self._list_changes() or not self._should_have_called(answer):
                return None
            if self._list_returned() or not self._done:
                return Undone(reason="no tool was called for it.")
            failed = self._done
        last = failed[-1].output
        return Undone(reason=last.error or "the call failed", error_code=last.error_code or "", stage=last.error_stage)

    async def run_by_rules(self, calls: ToolCalls) -> SubAgentResult:
        """Makes the call that the message names completely; if that call fails, the result is its failure. Else returns
        what was done before the model failed, and where the rest is done without a model."""
        if not self._done and (opening := self.build_opening_call()) is not None:
            spec = self.granted[opening.tool].spec
            args = parse_text_args(spec, opening.values)
            if args is not None and find_argument_problem(spec, args) is None:
                await calls(opening.tool, args)
                if (made := self.conclude_opening()) is not None:
                    return made
        if len(self._done) == 1 and (output := self._done[0].output).error_code is not None:
            return self._build_failed_result(self._done[0].tool, output)
        done = "; ".join(f"{one.tool}: {_cut(one.output.text, 300)}" for one in self._list_changes())
        failed = [one.output.error for one in self._done if one.output.error_code is not None]
        lines = [f"Done so far: {done}." if done else "Nothing was changed."]
        lines += [f"The last call failed: {str(failed[-1]).rstrip('.')}."] if failed else []
        lines.append(f"Without a model: {self.DOORS}.")
        doubt = Uncertainty(severity="notable", message="the model failed before this was finished")
        return SubAgentResult(
            success=False, data=self.build_partial_data(), uncertainties=(doubt,), summary=" ".join(lines)
        )

    def _list_changes(self) -> list[_Call]:
        """The calls that changed something."""
        return [one for one in self._list_returned() if self._may_change(one.tool)]

    def _list_failed_changes(self) -> list[_Call]:
        """The changes that failed and were not made afterwards.

        A later success of the same tool corrects one failure. It corrects no refusal: a person who said no to Beta has
        not got it with Alpha.
        """
        failed: list[_Call] = []
        for call in self._done:
            if not self._may_change(call.tool):
                continue
            if call.output.error_code is not None:
                failed.append(call)
            elif corrected := [one for one in failed if one.tool == call.tool and not _is_refused(one)]:
                failed.remove(corrected[-1])
        return failed

    def _should_have_called(self, answer: str) -> bool:
        """Whether an end without a change rests on nothing: the router read a change, or no call has returned.
        A question may be answered from the results of earlier tasks.
        """
        specs = [tool.spec for tool in self.granted.values()]
        has_results = bool(answer and self.task.before) and not self.CHANGES_THINGS
        return names_change(self.task.action, specs) or not (self._list_returned() or has_results)

    def _list_returned(self) -> list[_Call]:
        """The calls that did not fail."""
        return [one for one in self._done if one.output.error_code is None]

    def _may_change(self, tool: str) -> bool:
        return tool in self.granted and self.granted[tool].spec.effect != "read"

    def _build_failed_result(self, tool: str, output: StepOutput) -> SubAgentResult:
        reason = (output.error or "the call failed").rstrip(".")
        unchanged = "Nothing was changed: " if self._may_change(tool) else ""
        undone = Undone(reason=f"{reason}.", error_code=output.error_code or "", stage=output.error_stage)
        # A person who refused the call needs no other way to it.
        doors = "" if output.error_code == ToolDeniedError.code else f" Without a model: {self.DOORS}."
        return self._build_result(f"{unchanged}{reason}.{doors}", undone=undone)

    def _build_result(self, summary: str, question: str = "", undone: Undone | None = None) -> SubAgentResult:
        data = self.build_partial_data()
        return SubAgentResult(success=True, data=data, summary=summary, question=question, undone=undone)


class RoomAgent(StudioAgent):
    """Creates, edits, copies and deletes rooms."""

    AGENT_ID = "room_agent"
    CATEGORY = "room_management"
    DESCRIPTION = (
        "Lists, shows, creates, edits, copies and deletes rooms (assistants with tools and prompts of their own)."
    )
    HANDLES = "rooms: list, show, create, edit, copy, delete; undo of these"
    DOORS = "`stepgate rooms list|show|create|edit|copy|delete`, or `/v1/rooms`"
    KEYWORDS = ("room", "rooms", "assistant")
    BORROWS = (
        "rooms_list", "room_show", "room_create", "room_edit", "room_copy", "room_delete", "search_entities",
        "get_entity_details",
    )  # fmt: skip


class ToolAgent(StudioAgent):
    """Generates tools and takes them through review to their use."""

    AGENT_ID = "tool_agent"
    CATEGORY = "tool_generation"
    DESCRIPTION = "Generates tools from a description, and applies, refines, discards or restores them."
    HANDLES = "generated tools: generate, show, apply, discard, refine, restore, remove"
    DOORS = "`stepgate tools`, or `/v1/studio/tools`"
    KEYWORDS = ("tool", "generate", "apply")
    TIMEOUT_SECONDS = 900
    BORROWS = (
        "tools_list", "tool_show", "tool_generate", "tool_refine", "tool_apply", "tool_discard", "tool_restore",
        "tool_remove", "rooms_list", "room_show", "room_edit",
    )  # fmt: skip


class QueryAgent(StudioAgent):
    """Answers questions about what this gateway consists of."""

    AGENT_ID = "query_agent"
    CATEGORY = "query"
    DESCRIPTION = (
        "Finds rooms, tools, skills, servers, collections and prompts of this gateway and how they are related."
    )
    HANDLES = "questions: find, search, inspect, compare rooms, tools, skills, servers, prompts; how they are related"
    DOORS = "`stepgate rooms list`, `stepgate tools list`, or `/v1/studio/graph`"
    KEYWORDS = ("find", "search", "which", "related")
    CHANGES_THINGS = False
    BORROWS = ("rooms_list", "room_show", "search_entities", "get_entity_details", "explain_relationship")


class ConfigAgent(StudioAgent):
    """Manages the prompt library and MCP servers, and says which secrets are configured."""

    AGENT_ID = "config_agent"
    CATEGORY = "config"
    DESCRIPTION = "Saves and applies prompts, connects MCP servers, sets schedules, and says which secrets there are."
    HANDLES = "configuration: prompts of the library, MCP servers, schedules, names of secrets (not their values)"
    DOORS = (
        "`stepgate prompts`, `stepgate mcp-servers`, `stepgate schedules`, `/v1/studio/prompts`, `/v1/studio/secrets`"
    )
    KEYWORDS = ("prompt", "secret", "server", "mcp")
    BORROWS = (
        "prompts_list", "prompt_show", "prompt_save", "prompt_apply", "prompt_remove", "list_secrets",
        "mcp_servers_list", "mcp_server_test", "mcp_server_add", "mcp_server_remove", "rooms_list", "room_show",
        "schedules_list", "schedule_create", "schedule_remove",
    )  # fmt: skip


STUDIO_AGENTS: tuple[type[StudioAgent], ...] = (RoomAgent, ToolAgent, QueryAgent, ConfigAgent)


def make_studio_agents(tools: Container[str]) -> list[type[StudioAgent]]:
    """The sub-agents that a run with these tools may start."""
    return [kind for kind in STUDIO_AGENTS if f"spawn_{kind.AGENT_ID}" in tools]


def find_meant_tools(action: str, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    """The tool that an action names; else those of whose names, else of whose keywords its first word is one."""
    specs, verb = list(specs), next(iter(action.casefold().split()), "")
    named = [spec for spec in specs if spec.name == action] or [spec for spec in specs if verb in spec.name.split("_")]
    return named or [spec for spec in specs if verb in spec.keywords]


def names_change(action: str, specs: Iterable[ToolSpec]) -> bool:
    """Whether an action is a tool that changes something, or a verb of such tools only."""
    meant = find_meant_tools(action, specs)
    return bool(meant) and all(spec.effect != "read" for spec in meant)


def _is_refused(call: _Call) -> bool:
    """Whether a person said no to a call, without asking for another one instead."""
    return call.output.error_code == ToolDeniedError.code and call.output.error_stage == REFUSED_STAGE


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [cut]"
