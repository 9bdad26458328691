"""Values of changes that a small model makes up: they stand neither in the request nor in anything that was found.

The model gets the problem once. If it makes a value up again, the user is asked for it, or shown the change before it
is made.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.json_walk import iter_leaves
from agent.core.models import PlanStep
from agent.planning.request import PlanningRequest, RoundResult
from agent.text.dates import DateMention
from agent.text.values import find_values
from agent.tools import ToolSpec
from agent.tools.catalogue import get_first_sentence
from agent.tools.client_tools import CLIENT_ORIGIN

COMPOSED_WORDS = 4
"""Words from which on a text is one that the model is to write, such as a message."""
DESCRIBING_WORDS = 3
"""Words from which on a value may describe what is meant, in place of its name."""
DESCRIPTION_CHARS = 120
MAX_DIGITS = 30
SHORTEST_STEM = 3
"""Letters that two forms of a word share."""
MADE_UP = "a value of this change stands neither in the request nor in a result"
_TOKEN = re.compile(r"[^\W_]+")
_WEB = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MadeUpValue:
    """An input of a change whose value the model made up."""

    step: PlanStep
    spec: ToolSpec
    name: str
    refused_by: str = ""
    """The tool whose error in this run did not know the value."""

    @property
    def is_required(self) -> bool:
        """Whether the tool cannot be called without the input."""
        required = self.spec.input_schema.get("required")
        return isinstance(required, list) and self.name in required

    @property
    def may_follow(self) -> bool:
        """Whether the value may follow from the request in a way that no rule sees, as a date from "tomorrow" does."""
        return any(isinstance(mention, DateMention) for mention in find_values(str(self.step.args[self.name])))


class MadeUpValueError(PlanInvalidError):
    """Raised for a decision to change something with values that nobody gave."""

    def __init__(self, values: Sequence[MadeUpValue]) -> None:
        super().__init__([_describe_problem(one) for one in values])
        self.values = values


def _describe_problem(value: MadeUpValue) -> str:
    problem = f"{value.step.tool}: the value {value.step.args[value.name]!r} of {value.name}"
    if value.refused_by:
        return f"{problem} is unknown to {value.refused_by}; call {value.refused_by} with another value first"
    remedy = "look it up, or ask the user" if value.is_required else "leave the input out"
    return f"{problem} stands neither in the request nor in a result; {remedy}"


def find_made_up_values(steps: Iterable[PlanStep], request: PlanningRequest) -> tuple[MadeUpValue, ...]:
    """The inputs of changes whose values stand nowhere. Texts that the model is to write are not looked at, and calls
    that a client runs itself: it sees their values, and does not say what changes something."""
    changing = [step for step in steps if step.action != "skill" and request.catalogue.has_side_effect(step)]
    if not changing:
        return ()
    known_tokens = _collect_tokens(_list_known_texts(request))
    request_tokens = _collect_tokens(_list_known_texts(replace(request, ground="")))
    unknown_values = _collect_unknown_values(request.rounds)
    made_up_values = []
    for step in changing:
        spec = request.catalogue.get_tool(step.tool)
        if spec is None or spec.origin == CLIENT_ORIGIN:
            continue
        described = _collect_tokens([spec.description, str(spec.input_schema)])
        allowed_tokens = known_tokens | {token for token in described if not token.isdigit()}
        made_up = [name for name, value in step.args.items() if not _is_known(value, known_tokens, allowed_tokens)]
        made_up = made_up or _list_unasked_texts(step, request_tokens | described)
        made_up_values += [MadeUpValue(step, spec, name) for name in made_up]
        refused = {name: unknown_values.get(str(value).casefold(), "") for name, value in step.args.items()}
        made_up_values += [
            MadeUpValue(step, spec, name, by) for name, by in refused.items() if by and name not in made_up
        ]
    return tuple(made_up_values)


def list_unasked_changes(steps: Iterable[PlanStep], request: PlanningRequest) -> frozenset[str]:
    """The ids of the changes that only hold a text of the model's own for a place that nobody named."""
    made_up_values = find_made_up_values(steps, request)
    return frozenset(one.step.id for one in made_up_values if _is_composed(one.step.args[one.name]))


def format_question(value: MadeUpValue) -> str:
    """The question for a value."""
    properties = value.spec.input_schema.get("properties")
    schema = properties.get(value.name) if isinstance(properties, dict) else None
    described = schema.get("description") if isinstance(schema, dict) else None
    meaning = f" ({described})" if isinstance(described, str) and described else ""
    purpose = get_first_sentence(value.spec.description, DESCRIPTION_CHARS).rstrip(".")
    return f"A value is missing for `{value.spec.name}` ({purpose}): which `{value.name}`{meaning} do you mean?"


def holds_made_up_address(inputs: JsonValue, request: PlanningRequest) -> bool:
    """Whether one of a call's inputs is the URL of a host that nobody named, not even by a word such as "bbc".

    A small model that finds nothing more to call fetches pages of hosts that it makes up."""
    values = inputs.values() if isinstance(inputs, dict) else ()
    hosts = [_read_host(value) for value in values if isinstance(value, str)]
    if not any(hosts):
        return False
    text = "\n".join((*_list_known_texts(request), request.instructions, request.room.system_prompt)).casefold()
    return any(host and not _is_named(host, text) for host in hosts)


def _read_host(value: str) -> str:
    """The host of a URL; "" for other texts."""
    try:
        return (urlsplit(value).hostname or "") if _WEB.match(value) else ""
    except ValueError:
        return ""


def _is_named(host: str, text: str) -> bool:
    labels = [label for label in host.casefold().split(".")[:-1] if label != "www"]
    return host.casefold() in text or any(len(label) > 1 and label.replace("-", " ") in text for label in labels)


def _list_known_texts(request: PlanningRequest) -> list[str]:
    return [
        request.question,
        request.original,
        request.ground.partition("\n")[2],  # without the date, which a request need not mean
        *(message.content for message in request.history),
        *(item.text for item in request.memories),
        *(one.text for one in request.earlier_results),
        *(call.text for call in request.rounds if not call.failed),
    ]


def _collect_unknown_values(rounds: Iterable[RoundResult]) -> dict[str, str]:
    """The descriptions that a tool's error did not know, in lower case, and that tool. A small
    model goes on with "the manager of ..." where it was to look up a name."""
    refused: dict[str, str] = {}
    for call in rounds:
        texts = (leaf.casefold() for _, leaf in iter_leaves(call.args) if isinstance(leaf, str))
        for value in [text for text in texts if len(text.split()) >= DESCRIBING_WORDS]:
            if not call.failed:
                refused.pop(value, None)
            elif value in call.text.casefold():
                refused[value] = call.tool
    return refused


def _list_unasked_texts(step: PlanStep, asked: frozenset[str]) -> list[str]:
    """The inputs with texts of the model's own in a call of which nothing else was asked for or found: it knows from
    the list of files alone where it writes to."""
    written = [name for name, value in step.args.items() if _is_composed(value)]
    others = [value for name, value in step.args.items() if name not in written and value is not None]
    return [] if not others or any(_is_known(value, asked, asked) for value in others) else written


def _is_composed(value: JsonValue) -> bool:
    return isinstance(value, str) and " " in value and len(_TOKEN.findall(value)) >= COMPOSED_WORDS


def _collect_tokens(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(token for text in texts for token in _TOKEN.findall(text.casefold()))


def _is_known(value: JsonValue, known: frozenset[str], told: frozenset[str]) -> bool:
    if isinstance(value, list):
        return all(_is_known(item, known, told) for item in value)
    if value is None or isinstance(value, bool | dict):
        return True
    if _is_composed(value):
        return True
    tokens = _TOKEN.findall(str(value).casefold())
    return all(_stands_in(token, told if isinstance(value, str) else known) for token in tokens)


def _stands_in(token: str, known: frozenset[str]) -> bool:
    """Whether a word stands there, perhaps with another ending; a number must stand there as it is."""
    if token in known:
        return True
    if token.isdigit():
        return any(one.isdigit() and int(one) == int(token) for one in known if len(one) < MAX_DIGITS)
    if len(token) < SHORTEST_STEM:
        return False
    words = (one for one in known if len(one) >= SHORTEST_STEM)
    return any(one.startswith(token) or token.startswith(one) for one in words)
