"""Decisions that make earlier calls again, or the same call for another thing than the user named."""

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject
from agent.planning.reply import list_calls
from agent.planning.request import PlanningRequest, RoundCall

_IDENTIFIER = re.compile(r"\S*\d\S*")
_DIGITS = re.compile(r"\d+")


class RepeatedCallError(PlanInvalidError):
    """Raised for a decision that only makes earlier calls again."""

    def __init__(self, call: RoundCall, problem: str) -> None:
        super().__init__([problem])
        self.call = call


def check_calls(data: JsonObject, request: PlanningRequest) -> None:
    """Raises `PlanInvalidError` for a decision that makes earlier calls again, or the same call for another thing."""
    check_repetition(data, request.rounds)
    check_replaced_codes(data, request)


def check_repetition(data: JsonObject, rounds: Sequence[RoundCall]) -> None:
    """Raises `RepeatedCallError` if every call of a decision was made before with the same inputs."""
    earlier = [next((one for one in rounds if _is_same(call, one)), None) for call in list_calls(data)]
    call = next((one for one in earlier if one is not None and one.failed), earlier[0] if earlier else None)
    if call is None or None in earlier:
        return
    if call.may_have_happened:
        problem = (
            f"{call.tool} may have done this already: {call.text[:300]}. Do not call it for this again, with other "
            "inputs neither; call a tool that shows whether it happened, or answer"
        )
        raise RepeatedCallError(call, problem)
    problem = (
        f"{call.tool} failed with these inputs: {call.text[:300]}. Use other values, one call for each, or answer"
        if call.failed
        else f"{call.tool} was called with these inputs already; its result is above. "
        "Call another tool for what is missing, with values of the results, or answer"
    )
    raise RepeatedCallError(call, problem)


def check_replaced_codes(data: JsonObject, request: PlanningRequest) -> None:
    """Raises `PlanInvalidError` for a decision that looks at another thing than the user named, once that one was not
    known: `budget-2030.csv` for `budget-2031.csv`, which is in no text but the error that refused the other."""
    calls = list_calls(data)
    refused = _list_unknown_codes(request)
    if not refused or not calls:
        return
    stated = "\n".join((request.question, *(one.text for one in request.rounds if not one.failed))).casefold()
    for call in calls:
        spec = request.catalogue.get_tool(str(call.get("tool")))
        leaves = (leaf for _, leaf in iter_leaves(call.get("inputs")) if isinstance(leaf, str))
        for value in leaves if spec is not None and spec.effect == "read" else ():
            named = next((one for one in refused if _differs_in_digits(value, one)), "")
            if named and value.casefold() not in stated:
                raise PlanInvalidError(
                    [f"the user named {named}, which is not there; {value} is another one. Answer so"]
                )


def _list_unknown_codes(request: PlanningRequest) -> list[str]:
    """The values with digits that the request names and that errors did not know."""
    question = request.question.casefold()
    leaves = [(one, leaf) for one in request.rounds if one.failed for _, leaf in iter_leaves(one.args)]
    texts = [(one, leaf) for one, leaf in leaves if isinstance(leaf, str) and _IDENTIFIER.fullmatch(leaf)]
    return [leaf for one, leaf in texts if leaf.casefold() in question and leaf.casefold() in one.text.casefold()]


def _differs_in_digits(value: str, other: str) -> bool:
    return value.casefold() != other.casefold() and _DIGITS.sub("0", value.casefold()) == _DIGITS.sub(
        "0", other.casefold()
    )


def _is_same(call: Mapping[str, JsonValue], made: RoundCall) -> bool:
    return (call.get("tool"), call.get("inputs")) == (made.tool, made.args)
