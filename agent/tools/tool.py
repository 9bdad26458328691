"""The `Tool` protocol, the context and the result of a call, and `TypedTool`, the base class of our tools."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, get_args, get_origin, runtime_checkable

from pydantic import BaseModel, JsonValue

from agent.core.client_requests import AskClient, refuse_client_request
from agent.core.errors import ToolDeniedError
from agent.core.models import ArgumentRole, JsonObject, RetrievalMode, Source, Tier
from agent.core.principal import Principal
from agent.core.subagent_result import SubAgentResult
from agent.text.own_words import OwnWords
from agent.tools.flat_schema import build_flat_schema
from agent.tools.spec import (
    NO_ROLES,
    READ_ONLY,
    ConversationUse,
    PlanHints,
    ToolAnnotations,
    ToolSpec,
    UserSource,
)

if TYPE_CHECKING:
    from agent.llm.port import ModelReply, ResponseSchema

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)


class SubAgentSpawner(Protocol):
    """Starts sub-agents within the call of a tool. Implemented by whatever executes calls."""

    async def spawn(self, agent_id: str, task: JsonObject) -> SubAgentResult:
        """Runs a sub-agent to its end. Resumes one that an earlier process started, or returns its result again.

        If its time, turns or budget end, returns what it has found with `success` false. Raises `ToolInputError` for an
        unknown sub-agent or a task it does not accept, `ToolDeniedError` if the room's depth or number is reached,
        `SubAgentFailedError` if it fails.
        """
        ...

    def list_started_tasks(self, agent_id: str) -> list[JsonObject]:
        """The tasks of the sub-agents of this kind that this call has started, in order. A call that is
        repeated after a crash also gets those of the first time. Long texts are shortened as in the trace.
        """
        ...


class ToolModel(Protocol):
    """A model that a tool may ask within its call, on the run's budgets. Implemented by whatever executes calls."""

    async def ask(
        self, messages: tuple[JsonObject, ...], *, tier: Tier = "fast", schema: "ResponseSchema | None" = None
    ) -> str:
        """The text of one reply, in the form of `schema` where the endpoint knows schemas.

        Raises `ModelError`, and `BudgetError` before the call.
        """
        ...


class CallOtherTool(Protocol):
    """Calls another tool within a tool's call. Implemented by whatever executes calls."""

    async def __call__(self, name: str, args: JsonObject, suffix: str = "") -> "ToolResult":
        """The result. `suffix` makes the idempotency keys of several calls differ.

        Raises `ToolDeniedError` for a tool that the caller may not use, `ToolInputError` for arguments that do not fit,
        and what the tool raises.
        """
        ...


def _ignore_progress(line: str) -> None:
    """Ignores the line: nobody listens."""


CheckRedirect = Callable[[str, str], Awaitable[None]]
"""Called with the address that answered and the one that it redirects to. Raises `ToolDeniedError`."""


async def _allow_redirect(source: str, target: str) -> None:
    """Allows the redirect: outside of a run, nothing was read that it could carry."""


def _ignore_read(text: str, is_private: bool) -> None:
    """Outside of a run, no other tool is called."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The context of a call."""

    run_id: str
    owner: str
    idempotency_key: str = ""
    """Stays the same after a crash, changes with a RETRY verdict."""
    conversation_id: str | None = None
    tainted: bool = False
    """Whether the arguments contain untrusted content, also if a person has allowed the call."""
    get_own_words: Callable[[], OwnWords] = OwnWords
    """Gets the user's own words; none outside of a run."""
    subagents: SubAgentSpawner | None = None
    """Starts sub-agents; None outside of a run."""
    model: ToolModel | None = None
    """A model to ask; None outside of a run and in rules mode."""
    retrieval_mode: RetrievalMode | None = None
    """The room's retrieval mode; None if the room sets none."""
    collections: tuple[str, ...] | None = None
    """The collections that the room reads; None if it reads all."""
    api_key_id: str | None = None
    """The id of the API key that started the run; None for a caller without one."""
    scopes: tuple[str, ...] | None = None
    """The scopes of the key or token that started the run; None for the machine's owner, who needs none."""
    tools: tuple[str, ...] | None = None
    """The list of tools of the key or token that started the run; None without one."""
    report_progress: Callable[[str], None] = _ignore_progress
    """Sends a progress line to callers that wait for the run. Returns at once; nothing is stored."""
    ask_client: AskClient = refuse_client_request
    """Asks the client that waits for the run, its user or its model; None if no client can carry the request."""
    check_redirect: CheckRedirect = _allow_redirect
    """Decides whether a request of the call may be redirected: words must not travel on to another host."""
    call_tool: CallOtherTool | None = None
    """Calls another tool of the run, for tools that are built on others; None outside of a run."""
    note_read: Callable[[str, bool], None] = _ignore_read
    """Notes a text from outside, and whether it is private, that such a tool has read by itself."""

    def to_principal(self) -> Principal:
        """On whose behalf the call is made, for a tool that starts runs: with the caller's own rights."""
        scopes = None if self.scopes is None else frozenset(self.scopes)
        may_approve = scopes is None or "approve" in scopes
        return Principal(self.owner, self.api_key_id, self.tools, may_approve=may_approve, scopes=scopes)

    def require_scope(self, scope: str) -> None:
        """Raises `ToolDeniedError` if the caller's key or token lacks the scope, which the same work needs at its
        endpoint.
        """
        if self.scopes is not None and scope not in self.scopes:
            raise ToolDeniedError(f"this needs an API key with the scope {scope!r}")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: a JSON value, the text that people and models read, and its sources."""

    value: JsonValue
    text: str
    sources: tuple[Source, ...] = ()
    tainted: bool = False
    """Whether this result contains untrusted content, although not all results of the tool do."""
    content: tuple[JsonObject, ...] = ()
    """Content blocks (`agent.core.content_blocks`) that `text` only describes: images, audio, resources. For callers of
    this single tool; plans and models get the text."""
    has_artifacts: bool = False
    """Whether `content` holds files that callers may fetch later, so that it is stored in every run."""


class Tool(Protocol):
    """A tool as the tool gateway calls it. `call` receives validated arguments and raises `ToolError`s."""

    @property
    def spec(self) -> ToolSpec:
        """The description of this tool. It must not change while the tool is registered."""
        ...

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Executes the call once."""
        ...

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """The result of the call with this idempotency key, or None if it cannot be known."""
        ...


@runtime_checkable
class PreflightTool(Protocol):
    """A tool that knows in advance that a call must fail, so that no person is asked to approve it."""

    async def preflight(self, args: JsonObject, context: ToolContext) -> None:
        """Raises the `ToolError` that the call would fail with now. Changes nothing."""
        ...


CompleteMessages = Callable[[tuple[JsonObject, ...], int], Awaitable["ModelReply"]]
"""Asks a model with messages and the most tokens of the reply. Raises `ModelError` and `BudgetError`."""


@runtime_checkable
class ExplainingTool(Protocol):
    """A tool that shows a person what a call of it would do, in each question about it. An approval is void when the
    call would do something else. If the tool also requires approval, no list and no other tool makes calls of it.
    """

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """Markdown for the question to the person. Changes nothing. Raises only what `call` raises."""
        ...


def is_shown_call_by_call(tool: Tool) -> bool:
    """Whether a person must see what each call of the tool does, so that nothing makes its calls for them."""
    return isinstance(tool, ExplainingTool) and tool.spec.requires_approval


@runtime_checkable
class PreviewingTool(Protocol):
    """A tool that shows in a question what a call of it would replace. It does not decide whether there is one."""

    async def preview(self, args: JsonObject, context: ToolContext) -> str:
        """Markdown for the question to the person; "" for nothing. Changes nothing. Raises only what `call` raises."""
        ...


@runtime_checkable
class RefiningTool(Protocol):
    """A tool whose result a model may improve, in rooms that require the tool and in a run's first plan."""

    async def refine(
        self, value: JsonObject, args: JsonObject, complete: CompleteMessages
    ) -> tuple[ToolResult | None, str | None]:
        """A better result for the result `value` of a call with `args`, or None and a clause with the reason.

        Both are None if there is nothing to improve.
        """
        ...


class TypedTool(ABC, Generic[In, Out]):
    """The base class of our own tools: Pydantic in, Pydantic out. The schemas come from the models.

    A subclass names its models as type arguments, sets the class attributes and implements `run`. It overrides
    `format_text` and `list_sources` if people should read something else than the JSON.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    annotations: ClassVar[ToolAnnotations] = READ_ONLY
    tainted: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None
    keywords: ClassVar[tuple[str, ...]] = ()
    is_opt_in: ClassVar[bool] = False
    requires_approval: ClassVar[bool] = False
    uses_subagents: ClassVar[bool] = False
    conversation: ClassVar[ConversationUse] = "none"
    hints: ClassVar[PlanHints] = PlanHints()
    argument_roles: ClassVar[Mapping[str, ArgumentRole]] = NO_ROLES
    reads: ClassVar[tuple[UserSource, ...]] = ()
    reads_public_pages: ClassVar[bool] = False
    Input: type[In]
    """The model of the arguments, from the type arguments of the base class."""
    Output: type[Out]
    """The model of the result, likewise."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in vars(cls).get("__orig_bases__", ()):
            for variable, model in zip(getattr(get_origin(base), "__parameters__", ()), get_args(base), strict=False):
                attribute = {"In": "Input", "Out": "Output"}.get(variable.__name__)
                if attribute is not None and isinstance(model, type):
                    setattr(cls, attribute, model)

    def __init__(self) -> None:
        self._spec = ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=build_flat_schema(self.Input),
            output=self.Output,
            annotations=self.annotations,
            tainted=self.tainted,
            timeout_s=self.timeout_s,
            keywords=self.keywords,
            is_opt_in=self.is_opt_in,
            requires_approval=self.requires_approval,
            uses_subagents=self.uses_subagents,
            conversation=self.conversation,
            always_raises_errors=not self.annotations.open_world,  # web pages report failures as text
            hints=self.hints,
            argument_roles=self.argument_roles,
            reads_public_pages=self.reads_public_pages,
            reads=self.reads,
        )

    @property
    def spec(self) -> ToolSpec:
        """The description of this tool."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Parses the arguments, runs the tool and renders the output."""
        return self.make_result(await self.run(self.Input.model_validate(args), context))

    def make_result(self, output: Out) -> ToolResult:
        """Renders an output."""
        return ToolResult(
            output.model_dump(mode="json"),
            self.format_text(output),
            self.list_sources(output),
            tainted=self.is_tainted(output),
        )

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Always None: unknown, unless a subclass knows better."""
        return None

    @abstractmethod
    async def run(self, args: In, context: ToolContext) -> Out:
        """Does the work."""

    def format_text(self, output: Out) -> str:
        """The result as people and models read it; JSON by default."""
        return output.model_dump_json(indent=None, exclude_none=True)

    def is_tainted(self, output: Out) -> bool:
        """Whether this result contains untrusted content; False by default."""
        return False

    def list_sources(self, output: Out) -> tuple[Source, ...]:
        """The sources that the result can be cited by; none by default."""
        return ()
