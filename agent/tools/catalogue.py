"""What a plan may be made of: skills and tools, scored against a question and rendered for the planner's prompt."""

import json
import math
import re
from dataclasses import dataclass
from functools import cached_property

from agent.core.models import Effect
from agent.tools import ToolSpec

SHORTLIST = 20
"""Names a constrained decoder and an 8-billion-parameter model can still choose among."""
CATALOGUE_CHARS = 8_000
_SHORTEST = 60
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "has", "have", "how", "i", "in",
    "is", "it", "its", "me", "my", "of", "on", "or", "so", "that", "the", "this", "to", "was", "we", "what", "when",
    "which", "who", "why", "will", "with", "you", "your", "please", "use", "using", "get", "give", "show", "tell",
    "any", "all", "not", "if", "then", "them", "each", "one", "into", "out", "about", "only", "must", "should",
    "whenever", "every",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class SkillCard:
    """A skill as the planner sees it. `effect` is the worst of what it may call."""

    name: str
    description: str
    argument_hint: str = ""
    effect: Effect = "read"
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Catalogue:
    """The skills and tools of one run, each in order of name."""

    skills: tuple[SkillCard, ...] = ()
    tools: tuple[ToolSpec, ...] = ()

    def names(self) -> list[str]:
        """Every name, skills first."""
        return [card.name for card in self.skills] + [spec.name for spec in self.tools]

    def skill(self, name: str) -> SkillCard | None:
        """The skill of this name."""
        return next((card for card in self.skills if card.name == name), None)

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of this name."""
        return next((spec for spec in self.tools if spec.name == name), None)

    def scores(self, question: str) -> dict[str, float]:
        """How much each entry has to do with the question: words in common, rare ones counting more."""
        asked = words(question)
        texts = {card.name: words(f"{card.name} {card.description}") for card in self.skills}
        texts |= {
            spec.name: words(f"{spec.name} {spec.description}") | {stem(w) for w in spec.keywords}
            for spec in self.tools
        }
        spread: dict[str, int] = {}
        for text in texts.values():
            for word in text:
                spread[word] = spread.get(word, 0) + 1
        return {
            name: sum(math.log(1 + len(texts) / spread[word]) for word in asked & text) for name, text in texts.items()
        }

    def shortlist(self, question: str, limit: int = SHORTLIST) -> "Catalogue":
        """The `limit` entries that have most to do with the question, in their own order; all when they fit."""
        if len(self.skills) + len(self.tools) <= limit:
            return self
        scores = self.scores(question)
        chosen = set(sorted(scores, key=lambda name: (-scores[name], name))[:limit])
        return Catalogue(
            skills=tuple(card for card in self.skills if card.name in chosen),
            tools=tuple(spec for spec in self.tools if spec.name in chosen),
        )

    @cached_property
    def text(self) -> str:
        """As it stands in prompts: `render` to the usual length, once."""
        return self.render()

    def render(self, max_chars: int = CATALOGUE_CHARS) -> str:
        """The catalogue as text: the same bytes for the same entries. Descriptions are shortened before any entry
        is dropped."""
        length = 400
        text = self._lines(length)
        while len(text) > max_chars and length > _SHORTEST:
            length = max(_SHORTEST, length // 2)
            text = self._lines(length)
        while len(text) > max_chars:
            text = text[: text.rfind("\n")]
        return text

    def _lines(self, length: int) -> str:
        lines = ["Skills (inputs: task):"] if self.skills else []
        lines += [f"- {card.name}: {_short(card.description, length)}" for card in self.skills]
        lines += ["Tools:"] if self.tools else []
        lines += [f"- {spec.name}({_inputs(spec)}): {_short(spec.description, length)}" for spec in self.tools]
        return "\n".join(lines)


def words(text: str) -> frozenset[str]:
    """Content words, without their endings."""
    return frozenset(stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP and len(word) > 1)


def stem(word: str) -> str:
    """A word without the commonest endings; crude, but the same for question and description."""
    for ending in ("ations", "ation", "ings", "ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _inputs(spec: ToolSpec) -> str:
    properties = spec.input_schema.get("properties")
    required = spec.input_schema.get("required")
    if not isinstance(properties, dict):
        return ""
    needed = required if isinstance(required, list) else []
    return ", ".join(f"{name}{'' if name in needed else '?'}: {_type(prop)}" for name, prop in properties.items())


def _type(prop: object) -> str:
    if not isinstance(prop, dict):
        return "any"
    if isinstance(prop.get("enum"), list):
        return "|".join(json.dumps(item) for item in prop["enum"])
    return str(prop.get("type", "any"))


def _short(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + "…"
