"""Finds what of a first plan others wrote: in the ground, which has names of files and instructions of servers, and in
descriptions of tools.

They are in the prompt before anybody has read anything. So the author of a name could say what is changed, and a model
could put the names into an address that it fetches.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from agent.core.json_walk import iter_texts
from agent.core.models import PlanStep
from agent.core.plan_references import list_literals
from agent.execution.argument_trust import is_default
from agent.execution.ground import COLLECTIONS_HEAD, INSTRUCTIONS_HEAD
from agent.policy.guardrails.exfiltration_check import COMMON_ADDRESS_WORDS, ExfiltrationCheck
from agent.text.own_words import OwnWords
from agent.text.spelling import space_words
from agent.tools import ToolSpec
from agent.tools.catalogue import get_server_name, is_foreign, split_name
from agent.tools.client_tools import is_from_outside

EXACT_CHARS: Final = 5
_TOKEN: Final = re.compile(r"[\w@.+:/-]+")
_EXACT: Final = re.compile(r"[@\d]|\w\.\w")
QUOTED_LETTERS: Final = 20
"""Letters. A match of this length is not a coincidence."""
VALUE_CHARS: Final = 80
"""A longer literal is a text, of which only exact tokens and long quotes count."""
SHORTEST_NAME: Final = 5
SMALL_NUMBER: Final = 100
"""Smaller numbers, unless they are amounts, are in many names by chance."""
_EXTENSION: Final = re.compile(r"\.\w{1,5}(?=\s|$)")


class GroundQuotes:
    """Compares a plan's steps with a ground. `own_texts` are those of the user and the operator, and what is remembered
    as theirs. `specs` are the tools by name.
    """

    def __init__(self, ground: str, own_texts: Iterable[str], specs: Mapping[str, ToolSpec]) -> None:
        # The first line is the date, which the user need not say.
        self._date, _, self._ground = ground.partition("\n")
        self._own = tuple(own_texts)
        self._specs = specs

    def quotes(self, step: PlanStep, *, changes: bool) -> bool:
        """Whether a step has a value or an address from the ground that is missing in the user's words, or is a change
        that a file's name asks for, or that sends something where the tool of another server says.
        """
        spec = self._specs.get(step.tool)
        if changes and spec is not None and self._quotes_description(spec, step):
            return True
        if not self._ground:
            return False
        if not changes:
            return spec is not None and any(self._carries_name(one) for one in _iter_addresses(step, spec))
        text = "\n".join(iter_texts(dict(step.args)))
        if self._quotes_text(text):
            return True
        if spec is None or step.action == "skill":
            return False
        return self._names_tool(spec) or any(
            self._quotes_value(spec, name, value) for name, value in _iter_values(step, spec)
        )

    def _quotes_text(self, text: str) -> bool:
        """Whether a text has an exact token or a long passage of the ground."""
        exact, own_text = self._ground.casefold(), "\n".join(self._own).casefold()
        if any(token in exact and token not in own_text for token in _find_exact_tokens(text)):
            return True
        given = _keep_letters(text)
        pieces = (given[at : at + QUOTED_LETTERS] for at in range(len(given) - QUOTED_LETTERS + 1))
        return any(piece in self._ground_letters and piece not in self._own_letters for piece in pieces)

    def _quotes_value(self, spec: ToolSpec, name: str, value: JsonValue) -> bool:
        """Whether a whole literal, or a number in it, is in the ground alone."""
        role = spec.get_role(name)
        if role == "content" or value is None or isinstance(value, bool):
            return False
        if isinstance(value, int | float):
            is_small = role != "amount" and abs(value) < SMALL_NUMBER
            return not is_small and self._is_quoted(value, self._outside)
        text = str(value).strip()
        if not text or len(text) > VALUE_CHARS or not any(map(str.isalnum, text)):
            return False
        numbers = [int(digits) for digits in re.findall(r"\d{3,15}", text)]
        if any(self._is_quoted(number, self._outside) for number in numbers):
            return True
        if role == "other" and re.fullmatch(r"[a-z]+", text):  # a word such as `open` is in many names by chance
            return self._is_quoted(text, _spell(line for line in self._files if _names(line, _split(spec.name))))
        return self._is_quoted(text, self._outside)

    def _quotes_description(self, spec: ToolSpec, step: PlanStep) -> bool:
        """Whether an exact value is in what a server that nobody vouches for writes about its tools, and the call does
        not go to that server. A client's own tools are such ones too: it passes on those of servers that it knows.
        """
        author = _get_author(spec)
        texts = [
            text
            for other in self._specs.values()
            if is_from_outside(other) and not other.is_trusted_server and _get_author(other) != author
            for text in (other.description, *iter_texts(other.input_schema))
        ]
        described = _keep_letters("\n".join(texts))
        literals = [
            str(value) for name, value in _iter_values(step, spec) if described and spec.get_role(name) != "content"
        ]
        exact = {one for text in literals for one in (text, *_find_exact_tokens(text)) if _EXACT.search(one)}
        values = {letters for one in exact if len(letters := _keep_letters(one)) >= EXACT_CHARS}
        return any(one in described and one not in self._own_letters for one in values)

    def _is_quoted(self, value: JsonValue, lines: OwnWords) -> bool:
        spelled = space_words(value.replace("/", " ")) if isinstance(value, str) else value
        if not lines.hold(spelled):
            return False
        own = self._own_words
        is_own = own.hold(value) or own.hold(spelled) or (isinstance(value, str) and own.state(value))
        return not is_own and str(value) not in re.findall(r"\d+", self._date)

    def _names_tool(self, spec: ToolSpec) -> bool:
        """Whether the name of a file has all words of a tool's name, and the user's words none of them."""
        words = _split(spec.name)
        if len(words) < 2 or _names("\n".join(self._own), words):
            return False
        return any(words <= _split(line) for line in self._files)

    def _carries_name(self, address: str) -> bool:
        """Whether an address that the user did not write has words of names in what its host's owner does not choose,
        or a whole name in its path.
        """
        if self._own_words.hold(address):
            return False
        try:
            parts = urlsplit(address.strip())
        except ValueError:
            return False
        check = ExfiltrationCheck("\n".join(self._private), "\n".join(self._own))
        if check.has_leak(parts._replace(path="/").geturl()):
            return True
        names = {name for line in self._private for name in _list_parts(line)}
        own = _keep_letters(" ".join(self._own))
        return any(
            len(one) >= SHORTEST_NAME and one in names and one not in COMMON_ADDRESS_WORDS and one not in own
            for one in _list_parts(unquote(parts.path))
        )

    @cached_property
    def _files(self) -> tuple[str, ...]:
        """The names of files."""
        return tuple(line for head, line in _iter_lines(self._ground) if not head.startswith(_OTHER_HEADS))

    @cached_property
    def _private(self) -> tuple[str, ...]:
        """The names of files and collections."""
        lines = _iter_lines(self._ground)
        return tuple(line.split(": ")[0] for head, line in lines if not head.startswith(INSTRUCTIONS_HEAD))

    @cached_property
    def _outside(self) -> OwnWords:
        """What others wrote: names of files, and instructions of servers that nobody vouches for. Collections have
        names of the user's own.
        """
        trusted = {get_server_name(spec) for spec in self._specs.values() if spec.is_trusted_server}
        instructions = (line for head, line in _iter_lines(self._ground) if head.startswith(INSTRUCTIONS_HEAD))
        foreign = [line for line in instructions if line.partition(": ")[0] not in trusted]
        return _spell((*self._files, *(line.partition(": ")[2] for line in foreign)))

    @cached_property
    def _own_words(self) -> OwnWords:
        apart = [text.replace("/", " ") for text in self._own]
        spelled = (*map(space_words, apart), *(space_words(_EXTENSION.sub(" ", text)) for text in apart))
        return OwnWords(*spelled, *self._own)

    @cached_property
    def _ground_letters(self) -> str:
        return _keep_letters(self._ground)

    @cached_property
    def _own_letters(self) -> str:
        return _keep_letters("\n".join(self._own))


_OTHER_HEADS: Final = (COLLECTIONS_HEAD, INSTRUCTIONS_HEAD)


def _get_author(spec: ToolSpec) -> str:
    """The server whose tool it is; of a client's tools, and of ours, the origin."""
    return get_server_name(spec) if is_foreign(spec) else spec.origin


def _iter_lines(ground: str) -> Iterator[tuple[str, str]]:
    """Yields the entries of the ground with the heading above them."""
    head = ""
    for line in ground.splitlines():
        if line.startswith("- "):
            yield head, line[2:]
        else:
            head = line


def _iter_addresses(step: PlanStep, spec: ToolSpec) -> Iterator[str]:
    """Yields what a step itself writes into arguments that say where a call goes."""
    for name in spec.where_args:
        yield from (str(one) for one in list_literals(step.args.get(name)) if isinstance(one, str))


def _iter_values(step: PlanStep, spec: ToolSpec) -> Iterator[tuple[str, JsonValue]]:
    """Yields the literals of a step by their arguments, without those that the tool's schema lists or defaults to."""
    for name, value in step.args.items():
        listed = spec.get_property(name).get("enum")
        fixed: Sequence[JsonValue] = listed if isinstance(listed, list) else ()
        if not is_default(spec, name, value):
            yield from ((name, one) for one in list_literals(value) if one not in fixed)


def _spell(lines: Iterable[str]) -> OwnWords:
    """Lines with their words apart, with and without the endings of file names."""
    apart = [line.replace("/", " ") for line in lines]
    return OwnWords(*map(space_words, apart), *(space_words(_EXTENSION.sub(" ", line)) for line in apart))


def _split(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", split_name(text).casefold()))


def _names(line: str, words: frozenset[str]) -> bool:
    """Whether a line has one of the words of a tool's name."""
    return not _split(line).isdisjoint(word for word in words if len(word) > 2)


def _list_parts(path: str) -> list[str]:
    """The letters and digits of each part of a path, with and without its ending."""
    return [_keep_letters(one) for part in path.split("/") for one in (part, _EXTENSION.sub("", part))]


def _find_exact_tokens(text: str) -> set[str]:
    """The tokens that name one exact thing: with `@`, an inner dot or a digit, of `EXACT_CHARS` or more."""
    tokens = (token.strip(".,:;/-") for token in _TOKEN.findall(text.casefold()))
    return {token for token in tokens if len(token) >= EXACT_CHARS and _EXACT.search(token)}


def _keep_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
