"""The catalogue of skills and tools, as the planner's prompt shows it.

A catalogue of up to about 6,000 tokens is shown whole. A larger one shows the skills, our own tools and the best
matching tools of foreign MCP servers; the other foreign tools are shortened, and those for which no room is left are
named only. The prompt says so.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.core.models import Effect, PlanStep
from agent.text.terms import extract_query_terms, extract_terms
from agent.tools import ToolSpec, UserSource
from agent.tools.flat_schema import ANY_VALUE

CATALOGUE_CHARS = 25_000
"""About 6,000 tokens. A catalogue up to this length is shown whole."""
DESCRIPTION_CHARS = 240
"""Characters of a tool's description, cut after its first sentence."""
INPUTS_CHARS, TYPE_CHARS = 1_500, 200
"""Characters of a tool's inputs, and of the type of one. Of more inputs the required ones are shown first."""
WHOLE_TOOLS, SHORT_CHARS = 30, 30
"""In a large catalogue, the number of foreign tools with all inputs. The further ones have their required inputs, so
that all of them can be planned with, and as long as there is room this many characters of their description."""
SKILL_CHARS = 400
"""Characters. A skill's description says when to use it and when not to."""
_WORST: tuple[Effect, ...] = ("read", "idempotent", "effect")
_MAX_VALUES = 8
"""Values of an enumeration that are listed."""
ASKING_CHARS = 5_000
"""Characters of each end of a request that are read for what it asks for. Reading a megabyte would hold the event loop
for seconds."""


@dataclass(frozen=True, slots=True)
class SkillCard:
    """A skill in the catalogue. `effect` is the worst effect class of the tools that it may call."""

    name: str
    description: str
    argument_hint: str = ""
    effect: Effect = "read"
    tools: tuple[str, ...] = ()
    declared_tools: tuple[str, ...] = ()
    """Also those of its tools that the run does not have now, such as those of a server that is away."""
    tool_effects: tuple[Effect, ...] = ()
    """The effect classes of `tools`, in their order."""

    def get_tool_effect(self, name: str) -> Effect:
        """The effect class of one of the skill's tools; the skill's own for an unknown name."""
        return dict(zip(self.tools, self.tool_effects, strict=False)).get(name, self.effect)


def find_worst_effect(effects: Iterable[Effect]) -> Effect:
    """The effect class of something that may have any of `effects`."""
    return max(effects, key=_WORST.index, default="read")


@dataclass(frozen=True, slots=True)
class CatalogueView:
    """The catalogue of one prompt. `names` are the entries with inputs; `is_whole` is whether all have them."""

    text: str
    names: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True)
class Catalogue:
    """The skills and tools of one run, each sorted by name."""

    skills: tuple[SkillCard, ...] = ()
    tools: tuple[ToolSpec, ...] = ()

    def list_names(self) -> list[str]:
        """Every name, skills first."""
        return [card.name for card in self.skills] + [spec.name for spec in self.tools]

    def list_skill_tools(self) -> list[str]:
        """The tools that skills may call, each once, sorted."""
        return sorted({name for card in self.skills for name in card.tools})

    def get_skill(self, name: str) -> SkillCard | None:
        """The skill of this name, or None."""
        return next((card for card in self.skills if card.name == name), None)

    def has_side_effect(self, step: PlanStep) -> bool:
        """Whether a step changes something outside the agent."""
        spec = self.get_tool(step.tool) if step.action != "skill" else None
        return spec.has_side_effect if spec is not None else step.effect != "read"

    def get_tool(self, name: str) -> ToolSpec | None:
        """The tool of this name, or None."""
        return next((spec for spec in self.tools if spec.name == name), None)

    @cached_property
    def sources(self) -> frozenset[UserSource]:
        """The user's own sources that the tools read."""
        return frozenset(spec.hints.source for spec in self.tools if spec.hints.source is not None)

    def show(self, question: str, *, query: str = "", max_chars: int = CATALOGUE_CHARS) -> CatalogueView:
        """The whole catalogue if it fits. Else returns the skills, our own tools, and the foreign tools that
        best match the question, with the names of the others. Matches of `query`, the planner's search, come first.
        """
        if len(self._whole_text) <= max_chars:
            return CatalogueView(self._whole_text, tuple(self.list_names()), is_whole=True)
        foreign = [spec for spec in self.tools if is_foreign(spec)]
        lines = self._choose_lines(foreign, question, query, max_chars - len(self._own_text))
        text = [self._own_text] if self._own_text else []
        text.append("Tools of connected servers. Those without inputs here are spelled out by find_tools:")
        for server, tools in _group_by_server(foreign).items():
            begin = f", names begin with {_get_prefix(tools[0])}" if _get_prefix(tools[0]) else ""
            text.append(f"{server} ({len(tools)} tools{begin}):")
            text += [lines[spec.name] for spec in tools if spec.name in lines]
            rest = ", ".join(_get_local_name(spec) for spec in tools if spec.name not in lines)
            text += [f"- by name only: {rest}"] if rest else []
        own = [card.name for card in self.skills] + [spec.name for spec in self.tools if not is_foreign(spec)]
        new_names = tuple(spec.name for spec in foreign if spec.name in lines)
        return CatalogueView("\n".join(text), (*own, *new_names), is_whole=False)

    def _choose_lines(self, foreign: Sequence[ToolSpec], question: str, query: str, max_chars: int) -> dict[str, str]:
        """Lines for foreign tools: whole ones for those that match best, then one with its required inputs for
        each further tool, then descriptions for these, as long as there is room.
        """
        ranked = self.rank(foreign, question, query)
        lines: dict[str, str] = {}
        left = max_chars - sum(len(_get_local_name(spec)) + 2 for spec in foreign)
        levels = (ranked[:WHOLE_TOOLS], format_tool), (ranked, _format_call), (ranked, _format_tool_briefly)
        for specs, format_line in levels:
            for spec in specs:
                line, short = format_line(spec), lines.get(spec.name, _get_local_name(spec))
                if 0 < len(line) - len(short) <= left:
                    left -= len(line) - len(short)
                    lines[spec.name] = line
        return lines

    def rank(self, foreign: Sequence[ToolSpec], question: str, query: str) -> list[ToolSpec]:
        """The tools that the request names, then matches of the search, then matches of the question. Ties
        alternate between servers, so that alphabetical order favours none.
        """
        searched = self.index.compute_scores(query) if query else {}
        scores = self.index.compute_scores(question)
        query_text = f"{question}\n{query}".lower()
        turns = {spec.name: place for place, spec in enumerate(_take_turns(foreign))}

        def sort_key(spec: ToolSpec) -> tuple[bool, float, float, int]:
            named = _is_mentioned(spec, query_text)
            return (not named, -searched.get(spec.name, 0.0), -scores.get(spec.name, 0.0), turns[spec.name])

        return sorted(foreign, key=sort_key)

    @cached_property
    def index(self) -> "CatalogueIndex":
        """The word index of the tools, built once for each catalogue."""
        return CatalogueIndex(self.tools)

    @cached_property
    def _own_text(self) -> str:
        """The skills and our own tools, which are always shown."""
        lines = ["Skills (inputs: task):"] if self.skills else []
        lines += [_format_skill(card) for card in self.skills]
        own = [spec for spec in self.tools if not is_foreign(spec)]
        lines += ["Tools:"] if own else []
        return "\n".join([*lines, *map(format_tool, own)])

    @cached_property
    def _whole_text(self) -> str:
        """Every entry in full: the same text for the same entries."""
        lines = [self._own_text] if self._own_text else []
        for server, tools in _group_by_server(spec for spec in self.tools if is_foreign(spec)).items():
            lines += [f"Tools of the server {server}:", *map(format_tool, tools)]
        return "\n".join(lines)


class CatalogueIndex:
    """Finds tools by words. Rare words weigh more, and words of a name weigh more than those of a description."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._names = {spec.name: frozenset(extract_terms(split_name(spec.name))) for spec in tools}
        self._texts = {spec.name: self._names[spec.name] | _collect_terms(spec) for spec in tools}
        spread = Counter(term for text in self._texts.values() for term in text)
        self._weights = {term: math.log(1 + len(self._texts) / count) for term, count in spread.items()}

    def compute_scores(self, question: str) -> dict[str, float]:
        """The relevance of each tool to the question, from 0."""
        query_terms = frozenset(extract_query_terms(split_name(keep_ends(question))))
        return {
            name: sum(self._weights[term] * (1.5 if term in self._names[name] else 1.0) for term in query_terms & text)
            for name, text in self._texts.items()
        }


def _format_skill(card: SkillCard) -> str:
    """A skill's line, and one with the tools that a step may name for it."""
    line = f"- {card.name}: {shorten(card.description, SKILL_CHARS)}"
    return f"{line}\n  its tools: {', '.join(card.tools)}" if card.tools else line


def is_foreign(spec: ToolSpec) -> bool:
    """Whether a foreign MCP server offers the tool."""
    return spec.origin.startswith("mcp:")


def get_server_name(spec: ToolSpec) -> str:
    """The server's name of a foreign tool."""
    return spec.origin.removeprefix("mcp:")


def split_name(text: str) -> str:
    """Splits a name into words: `list_issues` becomes "list issues", `listIssues` "list Issues", `getHTTPStatus`
    "get HTTP Status". A plural such as "URLs" stays one word."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|_+", " ", text)


def _collect_terms(spec: ToolSpec) -> frozenset[str]:
    names = " ".join(spec.properties)
    text = f"{spec.description} {split_name(names)} {get_server_name(spec)} {' '.join(spec.keywords)}"
    return frozenset(extract_terms(text))


def _group_by_server(foreign: Iterable[ToolSpec]) -> dict[str, list[ToolSpec]]:
    groups: dict[str, list[ToolSpec]] = {}
    for spec in foreign:
        groups.setdefault(get_server_name(spec), []).append(spec)
    return groups


def _take_turns(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The first tool of each server, then the second of each, and so on."""
    places: Counter[str] = Counter()
    placed = []
    for spec in specs:
        placed.append((places[spec.origin], spec))
        places[spec.origin] += 1
    return [spec for _, spec in sorted(placed, key=lambda one: one[0])]


def _is_mentioned(spec: ToolSpec, asked: str) -> bool:
    """Whether the request names the tool. A name of one word must be written with its server."""
    local = _get_local_name(spec).lower()
    if spec.name.lower() in asked:
        return True
    spaced = split_name(local)
    return " " in spaced and re.search(rf"(?<!\w)(?:{re.escape(local)}|{re.escape(spaced)})(?!\w)", asked) is not None


def _get_prefix(spec: ToolSpec) -> str:
    server, separator, _ = spec.name.partition("__")
    return f"{server}__" if separator else ""


def _get_local_name(spec: ToolSpec) -> str:
    return spec.name.removeprefix(_get_prefix(spec))


def format_tool(spec: ToolSpec) -> str:
    """One line: the name, the inputs with their types, the first sentence."""
    return f"- {spec.name}({_format_inputs(spec)}): {get_first_sentence(spec.description, DESCRIPTION_CHARS)}"


def _format_call(spec: ToolSpec) -> str:
    """The name and the names of the required inputs; "…" stands for optional ones."""
    needed = spec.required
    has_more = len(spec.properties) > len(needed)
    return f"- {spec.name}({shorten(', '.join(needed + ['…'] * has_more), TYPE_CHARS)})"


def _format_tool_briefly(spec: ToolSpec) -> str:
    return f"{_format_call(spec)}: {get_first_sentence(spec.description, SHORT_CHARS)}"


def _format_inputs(spec: ToolSpec) -> str:
    needed = spec.required
    inputs = {
        name: f"{name}{'' if name in needed else '?'}: {shorten(_format_type(prop), TYPE_CHARS)}"
        for name, prop in spec.properties.items()
    }
    if sum(map(len, inputs.values())) <= INPUTS_CHARS:
        return ", ".join(inputs.values())
    input_lines: list[str] = []
    left = INPUTS_CHARS
    for name in sorted(inputs, key=lambda name: name not in needed):  # required inputs first
        left -= len(inputs[name])
        if left < 0:
            break
        input_lines.append(inputs[name])
    return ", ".join((*input_lines, f"and {len(inputs) - len(input_lines)} more"))


def _format_type(prop: object) -> str:
    if not isinstance(prop, dict):
        return "any"
    if isinstance(prop.get("enum"), list):
        values = [json.dumps(item, ensure_ascii=False) for item in prop["enum"]]
        return "|".join(values[:_MAX_VALUES]) + ("|…" if len(values) > _MAX_VALUES else "")
    if prop.get("anyOf") == ANY_VALUE["anyOf"]:
        return "any"
    if isinstance(prop.get("anyOf"), list):  # an optional value
        kinds = [_format_type(one) for one in prop["anyOf"] if isinstance(one, dict) and one.get("type") != "null"]
        return "|".join(dict.fromkeys(kinds)) or "any"
    kind = prop.get("type", "any")
    if kind == "array":
        return f"{_format_type(prop.get('items'))}[]"
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def keep_ends(text: str, begin: int = ASKING_CHARS, end: int = ASKING_CHARS, between: str = "\n") -> str:
    """A text without its middle, if it has more characters than both ends."""
    return text if len(text) <= begin + end else f"{text[:begin]}{between}{text[-end:]}"


def get_first_sentence(text: str, limit: int) -> str:
    """The first sentence of a description as one line of at most `limit` characters."""
    return shorten(re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'(])", " ".join(text.split()), maxsplit=1)[0], limit)


def shorten(text: str, length: int) -> str:
    """The text as one line of at most `length` characters, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + "…"
