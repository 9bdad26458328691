"""What `ParserPool` and its workers say to each other: one JSON object a line."""

from pydantic import Field, JsonValue

from agent.core.models import Frozen
from agent.knowledge.models import ParserInput, ParserOutput


class Request(Frozen):
    """One file to read, by which reader if not by the best, and what opens it."""

    input: ParserInput
    parser: str | None = None
    password: str | None = Field(default=None, repr=False)


class Problem(Frozen):
    """A `ParserError` on the wire."""

    code: str
    message: str
    details: dict[str, JsonValue] = Field(default_factory=dict)


class Reply(Frozen):
    """The document, or why there is none. Both are empty in the first line, which says that the worker is ready."""

    output: ParserOutput | None = None
    problem: Problem | None = None
