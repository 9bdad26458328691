"""Placeholders for personal data inside a run, and the way back: models see `<EMAIL_1>`, people see the address."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from agent.guardrails.models import Finding
from agent.guardrails.spans import replaced

_OPEN: Final = ("<", "\\<", "&lt;", "\\u003c", "\u2039", "\u27e8", "\uff1c")
_CLOSE: Final = (">", "\\>", "&gt;", "\\u003e", "\u203a", "\u27e9", "\uff1e")
_BETWEEN: Final = ("_", "\\_", " ", "-")
_SIGN: Final = re.compile(
    rf"(?:(?P<open>{'|'.join(map(re.escape, _OPEN))}) ?)?"
    r"(?P<kind>[A-Za-z]{2,20})(?P<between>\\?_|[ -])(?P<number>[0-9]{1,5})"
    rf"(?(open) ?(?:{'|'.join(map(re.escape, _CLOSE))})|(?![0-9A-Za-z_]))"
)
"""A placeholder as models spell it: in another case, escaped for Markdown, HTML or JSON, without its brackets."""
_NUMBERED: Final = re.compile(r"([A-Z]{2,20})_([0-9]{1,5})", re.IGNORECASE)


class Vault:
    """Values and their placeholders, for one run. The same value always has the same placeholder, and a placeholder
    that stands in a text already is never given out, so that nobody can have a stranger's value put into theirs."""

    def __init__(self, entries: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = {}
        self._signs: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}
        for sign, value in (entries or {}).items():
            kind, _, number = sign.rpartition("_")
            self._keep(kind, int(number), value)

    @property
    def entries(self) -> dict[str, str]:
        """Placeholder without brackets (`EMAIL_1`) to value: what a resumed run needs. It is personal data."""
        return dict(self._values)

    def redact(self, text: str, findings: Iterable[Finding]) -> str:
        """`text` with a placeholder in place of each finding."""
        self.avoid(text)
        ordered = sorted(findings, key=lambda found: found.start)
        return replaced(text, [(f.start, f.end, f"<{self.sign(f.kind, text[f.start : f.end])}>") for f in ordered])

    def avoid(self, text: str) -> None:
        """Never give out what stands in `text` as it came. Call it for a text before its first `sign`."""
        self._taken.update(f"{kind.upper()}_{int(number)}" for kind, number in _NUMBERED.findall(text))

    def sign(self, kind: str, value: str) -> str:
        """The placeholder of a value, without brackets."""
        same = (kind, re.sub(r"[\s().\-/]", "", value).casefold())
        if same not in self._signs:
            number = self._last.get(kind, 0) + 1
            while f"{kind}_{number}" in self._taken:
                number += 1
            self._keep(kind, number, value)
        return self._signs[same]

    def restore(self, text: str) -> str:
        """`text` with the values back in place. Placeholders that were never given out stay."""
        return _SIGN.sub(self._restored, text)

    def hide(self, text: str) -> str:
        """`text` with the placeholder of each value of this vault that stands in it, in the same spelling."""
        for value, sign in self._longest_first():
            if value in text:
                text = text.replace(value, f"<{sign}>")
        return text

    def disarm(self, text: str) -> str:
        """`text`, which is not of this run, so that no placeholder in it is taken for one of this vault's."""
        return _SIGN.sub(lambda found: found[0] if self._restored(found) == found[0] else _broken(found), text)

    def faceless(self, text: str) -> str:
        """`text` with `[EMAIL]` in the place of a placeholder: for keeping beyond this run, where it would stand for
        nothing, or for somebody else."""
        return _SIGN.sub(
            lambda found: found[0] if self._restored(found) == found[0] else f"[{found['kind'].upper()}]", text
        )

    def restorer(self) -> "Restorer":
        """The same for a text that comes in pieces."""
        return Restorer(self)

    def _longest_first(self) -> list[tuple[str, str]]:
        """An address that holds another one goes before it."""
        return sorted(((value, sign) for sign, value in self._values.items()), key=lambda pair: -len(pair[0]))

    def _keep(self, kind: str, number: int, value: str) -> None:
        sign = f"{kind}_{number}"
        self._values[sign] = value
        self._signs[kind, re.sub(r"[\s().\-/]", "", value).casefold()] = sign
        self._last[kind] = max(number, self._last.get(kind, 0))

    def _restored(self, match: re.Match[str]) -> str:
        before = match.string[match.start() - 1 : match.start()]
        if match["open"] is None and (before.isalnum() or before == "_"):
            return match[0]
        return self._values.get(f"{match['kind'].upper()}_{int(match['number'])}", match[0])


def _broken(found: re.Match[str]) -> str:
    """A placeholder that is none any more, and still tells a reader what it was."""
    at = found.start("number") - found.start()
    return f"{found[0][:at]}#{found[0][at:]}"


class Restorer:
    """Restores a text piece by piece and never lets half a placeholder out. What it holds back is at most one
    placeholder long, so a stream is not slowed down by more than that."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._held = ""
        self._before = ""
        self._known = -1
        self._starts: frozenset[str] = frozenset()
        self._longest = 0

    def feed(self, piece: str) -> str:
        """What can be said for certain after one more piece."""
        text = self._held + piece
        self._learn()
        low = text.lower()
        first = max(0, len(text) - self._longest)
        cut = next((at for at in range(first, len(text)) if low[at:] in self._starts), len(text))
        return self._say(text, cut)

    def end(self) -> str:
        """The rest; half a placeholder stays what it is."""
        return self._say(self._held, len(self._held))

    def _say(self, text: str, cut: int) -> str:
        whole = self._before + text
        until = len(self._before) + cut
        parts: list[str] = []
        at = len(self._before)
        for match in _SIGN.finditer(whole, at):
            if match.start() >= until:
                break
            parts += [whole[at : match.start()], self._vault._restored(match)]
            at = match.end()
        parts.append(whole[at : max(until, at)])
        self._held = whole[max(until, at) :]
        self._before = whole[: max(until, at)][-1:]
        return "".join(parts)

    def _learn(self) -> None:
        """Everything a placeholder of the vault may begin with, and whole ones that a further digit would change."""
        entries = self._vault.entries
        if len(entries) == self._known:
            return
        self._known = len(entries)
        starts: set[str] = set()
        for sign in entries:
            kind, _, number = sign.lower().rpartition("_")
            for between in _BETWEEN:
                bare = f"{kind}{between}{number}"
                starts.update(bare[:end] for end in range(1, len(bare) + 1))
                for opening, closing in zip(_OPEN, _CLOSE, strict=True):
                    for gap in ("", " "):
                        for last in ("", " "):
                            full = f"{opening}{gap}{bare}{last}{closing}"
                            starts.update(full[:end] for end in range(1, len(full)))
        self._starts = frozenset(starts)
        self._longest = max(map(len, starts), default=0)
