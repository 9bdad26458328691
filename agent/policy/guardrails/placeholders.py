"""Replaces personal data within a run by placeholders and restores it: models see `<EMAIL_1>`, people the address."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from agent.policy.guardrails.models import Finding
from agent.policy.guardrails.spans import replace_spans

_OPEN: Final = ("<", "\\<", "&lt;", "\\u003c", "\u2039", "\u27e8", "\uff1c")
_CLOSE: Final = (">", "\\>", "&gt;", "\\u003e", "\u203a", "\u27e9", "\uff1e")
_CLOSE_STARTS: Final = tuple({mark[:end] for mark in _CLOSE for end in range(1, len(mark))})
"""What a closing mark may begin with while the rest has not arrived. Models close with any mark, whatever they opened
with."""
_SEPARATORS: Final = ("_", "\\_", " ", "-")
_MAX_DIGITS: Final = 5
_PLACEHOLDER: Final = re.compile(
    rf"(?:(?P<open>{'|'.join(map(re.escape, _OPEN))}) ?)?"
    r"(?P<kind>[A-Za-z]{2,20})(?P<between>\\?_|[ -])(?P<number>[0-9]{1,5})"
    rf"(?(open) ?(?:{'|'.join(map(re.escape, _CLOSE))})|(?![0-9A-Za-z_]))"
)
"""A placeholder as models write it: in other case, escaped for Markdown, HTML or JSON, or without brackets."""
_MAX_SEARCHED: Final = 50
"""More values than these are looked for in one pass over the text, instead of each by itself."""
_NUMBERED_NAME: Final = re.compile(r"([A-Z]{2,20})_([0-9]{1,5})", re.IGNORECASE)


class PlaceholderMap:
    """The values of one run and their placeholders.

    A value always has the same placeholder. A placeholder that already occurs in a text is never assigned, so that
    nobody can get the value of somebody else inserted into their text.
    """

    def __init__(self, entries: Mapping[str, str] | None = None) -> None:
        self._values: Mapping[str, str] = entries if entries is not None else {}
        """Those it was made with, until the first assignment: most maps only restore, and a text can hold thousands."""
        self._own_values: dict[str, str] = {}
        """`_values`, once something was assigned."""
        self._placeholders: dict[tuple[str, str], str] | None = None
        """By kind and value; made with the first assignment."""
        self._reserved: set[str] = set()
        self._last_numbers: dict[str, int] = {}
        self._searched: tuple[int, int, dict[str, list[tuple[str, str]]]] | None = None
        """How many values there were, and what `_mask_many` looks for."""
        self._kinds: tuple[int, frozenset[str]] = (0, frozenset())
        """How many values there were, and their kinds."""

    @property
    def entries(self) -> dict[str, str]:
        """The values by placeholder without brackets (`EMAIL_1`), for a resumed run. Personal data."""
        return dict(self._values)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of values that have a placeholder: `EMAIL`."""
        count = len(self._values)
        if self._kinds[0] != count:
            self._kinds = count, frozenset([placeholder.rpartition("_")[0] for placeholder in self._values])
        return self._kinds[1]

    def replace_findings(self, text: str, findings: Iterable[Finding]) -> str:
        """The text with a placeholder for each finding."""
        self.reserve_existing(text)
        ordered = sorted(findings, key=lambda findings: findings.start)
        return replace_spans(
            text, [(f.start, f.end, f"<{self.assign_placeholder(f.kind, text[f.start : f.end])}>") for f in ordered]
        )

    def reserve_existing(self, text: str) -> None:
        """Reserves the placeholders that occur in a text. Call it before `assign_placeholder` for that text."""
        if "_" in text:
            self._reserved.update(f"{kind.upper()}_{int(number)}" for kind, number in _NUMBERED_NAME.findall(text))

    def assign_placeholder(self, kind: str, value: str) -> str:
        """The placeholder of a value, without brackets."""
        placeholders = self._load_placeholders()
        same = (kind, _fold_value(value))
        if same not in placeholders:
            number = self._last_numbers.get(kind, 0) + 1
            while f"{kind}_{number}" in self._reserved:
                number += 1
            self._own_values[f"{kind}_{number}"] = value
            placeholders[same] = f"{kind}_{number}"
            self._last_numbers[kind] = number
        return placeholders[same]

    def restore(self, text: str) -> str:
        """The text with the values restored. Placeholders that were never assigned stay."""
        return _PLACEHOLDER.sub(self._restore_match, text)

    def mask_known_values(self, text: str) -> str:
        """The text with placeholders for the known values that it contains in the same spelling."""
        if len(self._values) > _MAX_SEARCHED:
            return self._mask_many(text)
        for value, placeholder in self._list_longest_first():
            if value in text:
                text = text.replace(value, f"<{placeholder}>")
        return text

    def escape_foreign_placeholders(self, text: str) -> str:
        """A text of another run, changed so that none of its placeholders is restored here."""
        return _PLACEHOLDER.sub(
            lambda findings: (
                findings[0] if self._restore_match(findings) == findings[0] else _escape_placeholder(findings)
            ),
            text,
        )

    def anonymize_placeholders(self, text: str) -> str:
        """The text with `[EMAIL]` for placeholders, to be kept beyond this run."""
        return _PLACEHOLDER.sub(
            lambda findings: (
                findings[0] if self._restore_match(findings) == findings[0] else f"[{findings['kind'].upper()}]"
            ),
            text,
        )

    def create_stream_restorer(self) -> "StreamRestorer":
        """A restorer for a text that arrives in pieces."""
        return StreamRestorer(self)

    def _mask_many(self, text: str) -> str:
        """Masks the known values in one pass, whatever their number."""
        if self._searched is None or self._searched[0] != len(self._values):
            longest_first = self._list_longest_first()
            width = len(longest_first[-1][0])
            by_beginning: dict[str, list[tuple[str, str]]] = {}
            for value, placeholder in longest_first:
                by_beginning.setdefault(value[:width], []).append((value, f"<{placeholder}>"))
            self._searched = len(self._values), width, by_beginning
        _, width, by_beginning = self._searched
        spans: list[tuple[int, int, str]] = []
        at = 0
        while at < len(text):
            candidates = by_beginning.get(text[at : at + width], ())
            pair = next((one for one in candidates if text.startswith(one[0], at)), None)
            if pair is not None:
                spans.append((at, at + len(pair[0]), pair[1]))
            at += 1 if pair is None else len(pair[0])
        return replace_spans(text, spans)

    def _list_longest_first(self) -> list[tuple[str, str]]:
        """The values and placeholders, longest value first: one address can contain another."""
        return sorted(
            ((value, placeholder) for placeholder, value in self._values.items()), key=lambda pair: -len(pair[0])
        )

    def _load_placeholders(self) -> dict[tuple[str, str], str]:
        if self._placeholders is None:
            self._placeholders = {}
            self._values = self._own_values = dict(self._values)
            for placeholder, value in self._values.items():
                kind, _, number = placeholder.rpartition("_")
                self._placeholders[kind, _fold_value(value)] = placeholder
                self._last_numbers[kind] = max(int(number), self._last_numbers.get(kind, 0))
        return self._placeholders

    def _restore_match(self, match: re.Match[str]) -> str:
        whole = match[0]
        if whole[0] == "<" and (value := self._values.get(whole[1:-1])) is not None:  # as we write it
            return value
        before = match.string[match.start() - 1 : match.start()]
        if match["open"] is None and (before.isalnum() or before == "_"):
            return match[0]
        return self._values.get(f"{match['kind'].upper()}_{int(match['number'])}", match[0])


def _fold_value(value: str) -> str:
    """What is the same in all spellings of a value."""
    return re.sub(r"[\s().\-/]", "", value).casefold()


def _escape_placeholder(findings: re.Match[str]) -> str:
    """A placeholder that is no longer restored but still readable."""
    at = findings.start("number") - findings.start()
    return f"{findings[0][:at]}#{findings[0][at:]}"


class StreamRestorer:
    """Restores a text piece by piece and never returns half a placeholder.

    It holds back at most the length of one placeholder.
    """

    def __init__(self, placeholders: PlaceholderMap) -> None:
        self._placeholders = placeholders
        self._held = ""
        self._before = ""
        self._kinds: frozenset[str] = frozenset()
        self._heads: frozenset[str] = frozenset()
        self._open_heads: frozenset[str] = frozenset()
        self._beginnings: frozenset[str] = frozenset()
        self._longest = 0

    def feed(self, piece: str) -> str:
        """Adds a piece and returns the text that is now final."""
        text = self._held + piece
        self._refresh_heads()
        low = text.lower()
        first = max(0, len(text) - self._longest)
        cut = next((at for at in range(first, len(text)) if self._may_continue(low[at:])), len(text))
        return self._emit(text, cut)

    def end(self, piece: str = "") -> str:
        """Adds the last piece and returns the remaining text; half a placeholder stays as it is."""
        text = self._held + piece
        return self._emit(text, len(text))

    def _may_continue(self, tail: str) -> bool:
        """Whether a text, in lower case, is the beginning of a placeholder that the next piece may complete."""
        if tail in self._beginnings or _is_numbered(tail, self._heads):
            return True
        return any(
            tail.endswith(mark) and _is_numbered(tail[: -len(mark)].removesuffix(" "), self._open_heads)
            for mark in (" ", *_CLOSE_STARTS)
        )

    def _emit(self, text: str, cut: int) -> str:
        whole = self._before + text
        until = len(self._before) + cut
        parts: list[str] = []
        at = len(self._before)
        for match in _PLACEHOLDER.finditer(whole, at):
            if match.start() >= until:
                break
            parts += [whole[at : match.start()], self._placeholders._restore_match(match)]
            at = match.end()
        parts.append(whole[at : max(until, at)])
        self._held = whole[max(until, at) :]
        self._before = whole[: max(until, at)][-1:]
        return "".join(parts)

    def _refresh_heads(self) -> None:
        """Collects what stands before the number of a placeholder, and every beginning of that.

        By kind, not by placeholder: a text can hold thousands.
        """
        kinds = self._placeholders.kinds
        if kinds == self._kinds:
            return
        self._kinds = kinds
        bare = {f"{kind.lower()}{between}" for kind in kinds for between in _SEPARATORS}
        opened = {f"{opening}{gap}{head}" for opening in _OPEN for gap in ("", " ") for head in bare}
        self._heads, self._open_heads = frozenset(bare | opened), frozenset(opened)
        self._beginnings = frozenset(head[:end] for head in self._heads for end in range(1, len(head) + 1))
        self._longest = max(map(len, opened), default=0) + _MAX_DIGITS + 1 + max(map(len, _CLOSE_STARTS))


def _is_numbered(text: str, heads: frozenset[str]) -> bool:
    """Whether a text is one of the heads and a number, which another digit may still change."""
    head = text.rstrip("0123456789")
    return 0 < len(text) - len(head) <= _MAX_DIGITS and head in heads
