"""Cases of the set, what each column is sent for one, and what is kept of its reply."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from agent.core.errors import ConfigError
from gateway.features.evaluation.report import ERROR_STATUS, MeasuredResult
from tests.bench.endpoint import ChatReply, FunctionCall
from tests.bench.function_calls.checker import NATIVE, PROMPTED

CATEGORIES = {
    "simple": "simple_python",
    "multiple": "multiple",
    "parallel": "parallel",
    "parallel_multiple": "parallel_multiple",
    "irrelevance": "irrelevance",
    "live_simple": "live_simple",
    "live_multiple": "live_multiple",
    "live_parallel": "live_parallel",
    "live_irrelevance": "live_irrelevance",
    "live_relevance": "live_relevance",
}
"""The categories that can be chosen, and their names in the package: single turns with functions in Python's types."""
DEFAULT_CATEGORIES = ("simple", "multiple", "parallel", "irrelevance")
IRRELEVANCE = "irrelevance"

ColumnName = Literal["gateway", "chat", "native", "prompting"]
OFFERING_ROOM = "functions"
ROOM = "name: Functions\nclient_tools: offer\nmemory: false\ntools: []\nskills: []\n"
"""A room that plans with the client's tools and has none of its own, as the owner of these functions sets it up."""


class Case(BaseModel):
    """One case. `prompted` are the messages of the set's prompting mode; the others are sent with `tools`."""

    model_config = ConfigDict(frozen=True)

    id: str
    family: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    prompted: list[dict[str, Any]]


class CaseReply(MeasuredResult):
    """A column's reply to a case. `status` is `answered`, `refused` (HTTP 4xx) or `error`, which is asked again.

    `questions` are the approvals that were asked for and given.
    """

    calls: tuple[FunctionCall, ...] = ()
    text: str = ""
    questions: int = 0
    tokens: int = 0
    seconds: float = 0.0
    error: str = ""


def choose_categories(names: str) -> list[str]:
    """The package's names of categories given as `simple,parallel`. Raises `ConfigError` for an unknown one."""
    given = [name for name in names.split(",") if name] or DEFAULT_CATEGORIES
    unknown = [name for name in given if name not in CATEGORIES]
    if unknown:
        raise ConfigError(f"--categories: {unknown[0]!r} is unknown; the categories are {', '.join(CATEGORIES)}")
    return [CATEGORIES[name] for name in given]


def get_messages(column: ColumnName, case: Case) -> list[dict[str, Any]]:
    """The messages of a column's request."""
    return list(case.prompted if column == "prompting" else case.messages)


def get_tools(column: ColumnName, case: Case) -> list[dict[str, Any]] | None:
    """The tools of a column's request; None where the prompt describes them."""
    return None if column == "prompting" else case.tools


def build_case_reply(case: Case, replies: list[ChatReply]) -> CaseReply:
    """What is kept of the replies to one case: all but the last one asked for an approval."""
    last = replies[-1]
    status = "answered"
    if last.error:
        status = "refused" if 400 <= last.http_status < 500 else ERROR_STATUS
    return CaseReply(
        id=case.id,
        status=status,
        calls=last.calls,
        text=last.text,
        questions=len(replies) - 1,
        tokens=sum(reply.usage.total_tokens for reply in replies),
        seconds=round(sum(reply.seconds for reply in replies), 3),
        error=last.error,
    )


def build_answer(column: ColumnName, case: Case, reply: CaseReply) -> dict[str, Any]:
    """The line that `checker.py` grades."""
    return {
        "column": column,
        "id": case.id,
        "family": case.family,
        "form": PROMPTED if column == "prompting" else NATIVE,
        "calls": [[call.name, call.arguments] for call in reply.calls],
        "text": reply.text,
    }
