"""Shared by the tools over stored things: rooms, generated tools, prompts, MCP servers, recipes, secrets, the graph.

A call that would be refused is refused before a person is asked about it, and a refusal is an error that the same call
cannot avoid, with the check that refused it.

A thing that was saved after external text was read remembers that (`from_outside`), in its own record. What shows it is
text from outside again, whichever tool that is. Lists do not show it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.core.errors import (
    AgentError,
    AuthError,
    BusyError,
    QuotaError,
    RateLimitError,
    RequestError,
    ScopeError,
    ToolDeniedError,
    ToolInputError,
)
from agent.core.models import DeferredModel, JsonObject
from agent.tools.spec import ToolAnnotations
from agent.tools.tool import In, Out, ToolContext, ToolResult, TypedTool

CHANGES = ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=False)
SAVES = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
"""The same call again changes nothing more."""
DESTROYS = ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=False)
MAX_REVIEWED: Final = 1_000
"""Calls whose reviewed versions are remembered."""
Version = TypeVar("Version")
_PASSING = (AuthError, RateLimitError, QuotaError, BusyError)
"""Refusals that other arguments do not avoid."""


class Arguments(DeferredModel):
    """The base class of arguments: unknown ones are refused."""

    model_config = ConfigDict(extra="forbid")


class StoredThingTool(TypedTool[In, Out]):
    """The base class of these tools. A subclass implements `check` if a call can be refused beforehand."""

    is_opt_in: ClassVar[bool] = True

    async def preflight(self, args: JsonObject, context: ToolContext) -> None:
        """Raises `ToolInputError` and `ToolDeniedError` for a call that would be refused: nobody is asked about it."""
        with refuse_as_input():
            args = await self.replace_names(args, context)
            await self.check(self.Input.model_validate(args), context)

    async def replace_names(self, args: JsonObject, context: ToolContext) -> JsonObject:
        """The arguments with ids for the names that a subclass knows; unchanged by default."""
        return args

    async def check(self, args: In, context: ToolContext) -> None:
        """Raises what `run` would raise, as far as that is known beforehand. Changes nothing."""

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Calls the tool. Raises `ToolInputError` and `ToolDeniedError` if it is refused."""
        with refuse_as_input():
            return await super().call(await self.replace_names(args, context), context)

    def is_tainted(self, output: Out) -> bool:
        """Whether the output, or something in it, was saved as text from outside."""
        return _is_from_outside(output)


class ReviewedVersions(Generic[Version]):
    """Which version of a thing `explain` read last for each call: the call itself uses that one. Between the two,
    another step of the run may save the thing again, which no person has seen then.
    """

    def __init__(self) -> None:
        self._versions: dict[str, Version] = {}

    def note(self, context: ToolContext, version: Version | None) -> None:
        """Notes the version that a person is shown for the call; None: there is none to show."""
        self._versions.pop(context.idempotency_key, None)
        if version is not None:
            self._versions[context.idempotency_key] = version
        for key in [*self._versions][:-MAX_REVIEWED]:  # of questions that nobody answered with yes
            del self._versions[key]

    def take(self, context: ToolContext) -> Version | None:
        """Takes the version out; None where nobody was to be asked about the call."""
        return self._versions.pop(context.idempotency_key, None)


class StoredThingList:
    """A tool that lists things, before its base class. It shows the ids of what was saved as text from outside, and
    none of its texts (`omit_outside_text`), so that one such thing does not make the list a text from outside.
    """

    def is_tainted(self, output: Any) -> bool:
        """Always False."""
        return False


OUTSIDE_TEXT = "(written after external text was read; show it to read it)"
"""Takes the place of a description in a list."""
Line = TypeVar("Line", bound=BaseModel)


def omit_outside_text(line: Line) -> Line:
    """A line of a list, without its description if that was saved as text from outside."""
    return line.model_copy(update={"description": OUTSIDE_TEXT}) if _is_from_outside(line) else line


def _is_from_outside(shown: object) -> bool:
    if isinstance(shown, list | tuple):
        return any(map(_is_from_outside, shown))
    if not isinstance(shown, BaseModel):
        return False
    return getattr(shown, "from_outside", False) is True or any(_is_from_outside(value) for _, value in shown)


@contextmanager
def refuse_as_input() -> Iterator[None]:
    """Turns a refusal into a `ToolInputError` with its stage, and a missing right into a `ToolDeniedError`."""
    try:
        yield
    except _PASSING:
        raise
    except ScopeError as error:
        raise ToolDeniedError(format_refusal(error)) from error
    except RequestError as error:
        raise ToolInputError(format_refusal(error), stage=error.details.get("stage")) from error


def format_refusal(error: AgentError) -> str:
    """The message of a refusal with the check that refused it."""
    stage = error.details.get("stage")
    return f"{error.message}{f' (stage: {stage})' if stage else ''}"
