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
_PLACEHOLDER: Final = re.compile(
    rf"(?:(?P<open>{'|'.join(map(re.escape, _OPEN))}) ?)?"
    r"(?P<kind>[A-Za-z]{2,20})(?P<between>\\?_|[ -])(?P<number>[0-9]{1,5})"
    rf"(?(open) ?(?:{'|'.join(map(re.escape, _CLOSE))})|(?![0-9A-Za-z_]))"
)
"""A placeholder as models write it: in other case, escaped for Markdown, HTML or JSON, or without brackets."""
_NUMBERED_NAME: Final = re.compile(r"([A-Z]{2,20})_([0-9]{1,5})", re.IGNORECASE)


class PlaceholderMap:
    """The values of one run and their placeholders.

    A value always has the same placeholder. A placeholder that already occurs in a text is never assigned, so that
    nobody can get the value of somebody else inserted into their text.
    """

    def __init__(self, entries: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = {}
        self._placeholders: dict[tuple[str, str], str] = {}
        self._reserved: set[str] = set()
        self._last_numbers: dict[str, int] = {}
        for placeholder, value in (entries or {}).items():
            kind, _, number = placeholder.rpartition("_")
            self._store(kind, int(number), value)

    @property
    def entries(self) -> dict[str, str]:
        """The values by placeholder without brackets (`EMAIL_1`), for a resumed run. Personal data."""
        return dict(self._values)

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
        same = (kind, re.sub(r"[\s().\-/]", "", value).casefold())
        if same not in self._placeholders:
            number = self._last_numbers.get(kind, 0) + 1
            while f"{kind}_{number}" in self._reserved:
                number += 1
            self._store(kind, number, value)
        return self._placeholders[same]

    def restore(self, text: str) -> str:
        """The text with the values restored. Placeholders that were never assigned stay."""
        return _PLACEHOLDER.sub(self._restore_match, text)

    def mask_known_values(self, text: str) -> str:
        """The text with placeholders for the known values that it contains in the same spelling."""
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

    def _list_longest_first(self) -> list[tuple[str, str]]:
        """The values and placeholders, longest value first: one address can contain another."""
        return sorted(
            ((value, placeholder) for placeholder, value in self._values.items()), key=lambda pair: -len(pair[0])
        )

    def _store(self, kind: str, number: int, value: str) -> None:
        placeholder = f"{kind}_{number}"
        self._values[placeholder] = value
        self._placeholders[kind, re.sub(r"[\s().\-/]", "", value).casefold()] = placeholder
        self._last_numbers[kind] = max(number, self._last_numbers.get(kind, 0))

    def _restore_match(self, match: re.Match[str]) -> str:
        before = match.string[match.start() - 1 : match.start()]
        if match["open"] is None and (before.isalnum() or before == "_"):
            return match[0]
        return self._values.get(f"{match['kind'].upper()}_{int(match['number'])}", match[0])


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
        self._known = -1
        self._starts: frozenset[str] = frozenset()
        self._unclosed: frozenset[str] = frozenset()
        self._longest = 0

    def feed(self, piece: str) -> str:
        """Adds a piece and returns the text that is now final."""
        text = self._held + piece
        self._refresh_prefixes()
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
        if tail in self._starts:
            return True
        return any(tail.endswith(mark) and tail[: -len(mark)] in self._unclosed for mark in _CLOSE_STARTS)

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

    def _refresh_prefixes(self) -> None:
        """Collects every prefix of a placeholder, and whole ones that another digit would change."""
        entries = self._placeholders.entries
        if len(entries) == self._known:
            return
        self._known = len(entries)
        starts: set[str] = set()
        unclosed: set[str] = set()
        for placeholder in entries:
            kind, _, number = placeholder.lower().rpartition("_")
            for between in _SEPARATORS:
                bare = f"{kind}{between}{number}"
                starts.update(bare[:end] for end in range(1, len(bare) + 1))
                for opening in _OPEN:
                    for gap in ("", " "):
                        full = f"{opening}{gap}{bare}"
                        unclosed.update((full, f"{full} "))
                        starts.update(full[:end] for end in range(1, len(full)))
        self._unclosed = frozenset(unclosed)
        self._starts = frozenset(starts | unclosed)
        self._longest = max(map(len, unclosed), default=0) + max(map(len, _CLOSE_STARTS))
