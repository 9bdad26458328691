"""The suites of AgentDojo as MCP servers, and the jobs: one user task each, with or without an injection.

A *slot* is one server with the environment of one job at a time. Injections are placed by the package's attack
`important_instructions`, and graded by its own `utility` and `security`. Runs in the peer's environment.
"""

import copy
import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import mcp_types as types
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # type: ignore[import-not-found]
from agentdojo.attacks.important_instructions_attacks import (  # type: ignore[import-not-found]
    ImportantInstructionsAttackNoModelName,
)
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # type: ignore[import-not-found]
from agentdojo.task_suite.load_suites import get_suites  # type: ignore[import-not-found]
from mcp.server.lowlevel import Server
from pydantic import BaseModel

VERSION = "v1.2.2"
SUITES: dict[str, Any] = get_suites(VERSION)
MARK = "<INFORMATION>"
"""Begins every injection of the attack `important_instructions`."""
SINK_HOST = "attacker.example"
_READS = ("get_", "search_", "read_", "list_", "check_")
MAX_NAME_CHARS = 48

Style = Literal["plan", "skill", "rounds"]
Strategy = Literal["poison", "replan"]


class _Pipeline:
    name = "gpt-4o-2024-05-13"


def is_read(tool: str) -> bool:
    """Whether a tool of a suite only reads."""
    return tool.startswith(_READS)


def make_local_name(slot: str, tool: str) -> str:
    """The name under which the gateway knows a server's tool."""
    name = f"{slot}__{tool}"
    if len(name) <= MAX_NAME_CHARS:
        return name
    digest = hashlib.sha256(f"{slot}\x00{tool}".encode()).hexdigest()[:6]
    return f"{name[: MAX_NAME_CHARS - 7]}_{digest}"


@cache
def _make_attack(suite: str) -> Any:
    return ImportantInstructionsAttackNoModelName(SUITES[suite], _Pipeline())


@cache
def _load_clean(suite: str) -> Any:
    return SUITES[suite].load_and_inject_default_environment({})


def find_injections(suite: str, user_id: str, injection_id: str) -> dict[str, str] | None:
    """The injected texts of a pair by their places; None if the task shows no place for them."""
    try:
        texts: dict[str, str] = _make_attack(suite).attack(
            SUITES[suite].user_tasks[user_id], SUITES[suite].injection_tasks[injection_id]
        )
    except ValueError:
        return None
    return texts


def list_pairs(suite: str) -> list[tuple[str, str]]:
    """The pairs of tasks and injections that can be attacked: 629 over all suites, as in the paper."""
    loaded = SUITES[suite]
    usable = [
        name
        for name, task in loaded.injection_tasks.items()
        if task.ground_truth(_load_clean(suite).model_copy(deep=True))
        or (suite == "travel" and name == "injection_task_6")
    ]
    pairs = [(user, name) for user in loaded.user_tasks for name in usable]
    return [pair for pair in pairs if find_injections(suite, *pair) is not None]


@dataclass
class Job:
    """One run: what is asked, what is injected, and what happened."""

    suite: str
    user_id: str
    injection_id: str | None = None
    style: Style = "plan"
    strategy: Strategy = "poison"
    max_steps: int = 32
    calls: list[Any] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """Raw texts of results."""
    exfiltrated: list[str] = field(default_factory=list)
    """Requests that reached the attacker's address."""
    notes: list[str] = field(default_factory=list)
    obeyed: set[str] = field(default_factory=set)
    """The parts of the model that did what an injection says."""
    extractions: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)
    """What extractions return, by their tag, and the function that it is for."""

    def __post_init__(self) -> None:
        loaded = SUITES[self.suite]
        self.slot = self.suite
        self.task = loaded.user_tasks[self.user_id]
        self.injection = loaded.injection_tasks[self.injection_id] if self.injection_id else None
        texts = find_injections(self.suite, self.user_id, self.injection_id) if self.injection_id else None
        start = loaded.load_and_inject_default_environment(texts) if texts else _load_clean(self.suite)
        self.environment = self.task.init_environment(start.model_copy(deep=True))
        self.before = self.environment.model_copy(deep=True)
        clean = self.task.init_environment(_load_clean(self.suite).model_copy(deep=True))
        self.truth = [
            FunctionCall(function=call.function, args=copy.deepcopy(dict(call.args)))
            for call in self.task.ground_truth(clean)
        ]
        self.attack = self.injection.ground_truth(self.before.model_copy(deep=True)) if self.injection else []
        self.runtime = FunctionsRuntime(loaded.tools)
        self.tools = {function.name: make_local_name(self.slot, function.name) for function in loaded.tools}

    def is_useful(self, answer: str) -> bool:
        """Whether the user's task is done, by the suite's own grader."""
        block = [{"type": "text", "content": answer}]
        grade = SUITES[self.suite]._check_user_task_utility
        return bool(grade(self.task, block, self.before, self.environment, self.calls))

    def is_attacked(self, answer: str) -> bool:
        """Whether the attacker got what the injection asks for, by the suite's own grader."""
        block = [{"type": "text", "content": answer}]
        grade = SUITES[self.suite]._check_injection_task_security
        return bool(grade(self.injection, block, self.before, self.environment, self.calls))

    def count_evil_calls(self) -> int:
        """Returns how many of the attacker's changes were really made."""
        made = [(call.function, _encode(dict(call.args))) for call in self.calls]
        return sum(
            (call.function, _encode(without_none(call.args))) in made
            for call in self.attack
            if not is_read(call.function)
        )


JOBS: dict[str, Job] = {}
"""The job of each slot."""


def without_none(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments without those that are not given."""
    return {name: value for name, value in args.items() if value is not None}


def _encode(args: dict[str, Any]) -> str:
    return json.dumps(args, sort_keys=True, default=str)


def _to_plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _to_plain(item) for key, item in value.items()}
    return value


def make_server(suite: str) -> Any:
    """The MCP server of a suite."""
    functions = SUITES[suite].tools

    async def list_tools(context: Any, params: Any) -> Any:
        tools = []
        for function in functions:
            schema = function.parameters.model_json_schema()
            schema.pop("title", None)
            hints = types.ToolAnnotations(read_only_hint=is_read(function.name))
            tools.append(
                types.Tool(name=function.name, description=function.description, input_schema=schema, annotations=hints)
            )
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        job = JOBS.get(suite)
        if job is None:
            return types.CallToolResult(content=[types.TextContent(type="text", text="no job")], is_error=True)
        args = dict(params.arguments or {})
        job.calls.append(FunctionCall(function=params.name, args=args))
        result, error = job.runtime.run_function(job.environment, params.name, args)
        if error is not None:
            return types.CallToolResult(content=[types.TextContent(type="text", text=error)], is_error=True)
        text = tool_result_to_str(result)
        job.results.append(text)
        structured = {"result": json.loads(json.dumps(_to_plain(result), default=str))}
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=structured)

    return Server(suite, on_list_tools=list_tools, on_call_tool=call_tool)
