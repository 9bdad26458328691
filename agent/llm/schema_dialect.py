"""`SchemaDialect`: the part of JSON Schema that an endpoint takes, and the next smaller one after a refusal.

Every provider compiles another subset into its grammar: OpenAI wants each property required, Anthropic counts optional
ones, Gemini knows no closed objects, some grammars of llama.cpp no empty ones, others no unions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaDialect:
    """What a schema may contain. The default is all that this project writes."""

    requires_all: bool = False
    """Whether every property must be required; an optional one is then null when it is not given."""
    has_unions: bool = True
    has_counts: bool = True
    """Whether lists may have a least and a greatest number of items."""
    has_lengths: bool = True
    closes_objects: bool = True
    """Whether `additionalProperties: false` may be written."""
    has_empty_objects: bool = True
    has_mixed_values: bool = True
    """Whether an enumeration may hold anything but texts."""
    has_any_names: bool = True
    """Whether properties may be named in any way; else with letters, digits, dots, dashes and underscores."""
    max_values: int = 1_000
    """Values of all enumerations together. Those of one value decide what an object is, and are never left out."""
    max_optional: int | None = None
    """Optional properties of all objects together."""
    max_unions: int | None = None
    max_depth: int = 10
    """Levels of objects and lists below the root; deeper ones are texts."""

    def join(self, other: "SchemaDialect") -> "SchemaDialect":
        """The dialect that both of these endpoints would take."""
        return SchemaDialect(
            requires_all=self.requires_all or other.requires_all,
            has_unions=self.has_unions and other.has_unions,
            has_counts=self.has_counts and other.has_counts,
            has_lengths=self.has_lengths and other.has_lengths,
            closes_objects=self.closes_objects and other.closes_objects,
            has_empty_objects=self.has_empty_objects and other.has_empty_objects,
            has_mixed_values=self.has_mixed_values and other.has_mixed_values,
            has_any_names=self.has_any_names and other.has_any_names,
            max_values=min(self.max_values, other.max_values),
            max_optional=_find_least(self.max_optional, other.max_optional),
            max_unions=_find_least(self.max_unions, other.max_unions),
            max_depth=min(self.max_depth, other.max_depth),
        )


def _find_least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


WHOLE = SchemaDialect()
OPENAI = SchemaDialect(requires_all=True, has_lengths=False)
"""Strict mode: 1,000 values, 10 levels, no limits of texts; optional means nullable."""
ANTHROPIC = SchemaDialect(has_lengths=False, has_counts=False, has_any_names=False, max_optional=24, max_unions=16)
"""At most 24 optional properties and 16 unions."""
GEMINI = SchemaDialect(closes_objects=False, has_lengths=False, has_mixed_values=False, has_empty_objects=False)
SIMPLE = SchemaDialect(
    has_counts=False,
    has_lengths=False,
    has_empty_objects=False,
    has_mixed_values=False,
    has_any_names=False,
    max_values=100,
    max_depth=6,
)
"""Without what makes grammars large or fail; inputs keep their types."""
SMALLEST = SIMPLE.join(SchemaDialect(requires_all=True, has_unions=False, max_depth=4))
"""Objects, lists, texts, numbers and enumerations only."""
_BY_HOST: Mapping[str, SchemaDialect] = {
    "api.openai.com": OPENAI,
    "openai.azure.com": OPENAI,
    "api.anthropic.com": ANTHROPIC,
    "generativelanguage.googleapis.com": GEMINI,
}


def find_dialect(host: str) -> SchemaDialect:
    """The dialect of the endpoint at this host, or of everything if it is not known."""
    return next((one for name, one in _BY_HOST.items() if host == name or host.endswith(f".{name}")), WHOLE)


_NAMED: tuple[tuple[re.Pattern[str], SchemaDialect], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), dialect)
    for pattern, dialect in (
        (
            r"required to be supplied|(?:every|all) (?:key|propert|field)\w*.{0,40}required|must be required",
            SchemaDialect(requires_all=True),
        ),
        (
            r"(?:too many|limit|maximum|exceed).{0,60}(?:optional|union)|(?:optional|union).{0,60}(?:too many|exceed)",
            SchemaDialect(max_optional=16, max_unions=8),
        ),
        (r"\b(?:min|max)Length\b", SchemaDialect(has_lengths=False)),
        (r"\b(?:min|max)Items\b", SchemaDialect(has_counts=False)),
        (r"\b(?:any|one)_?Of\b|\bunions? (?:is|are|types? (?:is|are))\b", SchemaDialect(has_unions=False)),
        (r"\badditional_?Properties\b", SchemaDialect(closes_objects=False)),
        (r"\benum", SchemaDialect(max_values=100, has_mixed_values=False)),
        (r"non-?empty|empty object|at least one propert|no properties", SchemaDialect(has_empty_objects=False)),
        (r"\bnest|\bdepth\b|\bdeep", SchemaDialect(max_depth=4)),
        (r"\bpropert\w+ (?:name|key)s?\b", SchemaDialect(has_any_names=False)),
        (r"\btype'?\"? must be a string|\bmissing .{0,12}\btype\b", SchemaDialect(has_mixed_values=False)),
    )
)
"""The words of an error and what they say is not taken."""
_WHOLLY_REFUSED = re.compile(
    r"(?:response[_ ]?format|json_?schema|structured outputs?)\W.{0,60}(?:unavailable|not (?:yet )?(?:available|"
    r"supported|implemented|allowed|permitted)|unsupported|unknown|unrecognized|must be|invalid value)|"
    r"(?:does not|doesn't|cannot) support.{0,40}(?:response[_ ]?format|json_?schema|structured|grammar)|"
    r"(?:unsupported|unknown|unrecognized) .{0,40}(?:response[_ ]?format|json_?schema)",
    re.IGNORECASE,
)


def narrow_dialect(dialect: SchemaDialect, message: str) -> SchemaDialect | None:
    """The next smaller dialect after a refusal with this message; None if the endpoint takes no schema at all.

    An error that names what it refuses costs only that. Other errors lead by two steps to the smallest dialect."""
    narrower = dialect
    for pattern, named in _NAMED:
        if pattern.search(message):
            narrower = narrower.join(named)
    if narrower != dialect:
        return narrower
    if _WHOLLY_REFUSED.search(message):
        return None
    return next((smaller for step in (SIMPLE, SMALLEST) if (smaller := dialect.join(step)) != dialect), None)
