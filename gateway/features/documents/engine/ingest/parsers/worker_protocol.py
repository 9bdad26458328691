"""The messages between `ParserPool` and its workers: one JSON object a line."""

from pydantic import Field, JsonValue

from agent.core.models import FrozenModel
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput


class Request(FrozenModel):
    """One file to read, by which reader if not the best, its password, and whether to measure how much was read."""

    input: ParserInput
    parser: str | None = None
    password: str | None = Field(default=None, repr=False)
    is_measured: bool = True


class Problem(FrozenModel):
    """A `ParserError` in transit."""

    code: str
    message: str
    details: dict[str, JsonValue] = Field(default_factory=dict)


class WorkerReply(FrozenModel):
    """The document, or why there is none. Both are empty in the first line, which says that the worker is ready."""

    output: ParserOutput | None = None
    problem: Problem | None = None
