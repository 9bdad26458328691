"""Links and images of an answer made harmless: none is loaded by itself, none carries what was read to somebody else.

A browser that shows an answer fetches its images at once, and a link is one click away. Text from outside can ask a
model to put what it knows into such an address. So remote images become links, and a link is taken out when its host
comes from outside and the address does not (something was added to it), or when it holds words from outside.

One scanner reads from left to right and asks for more text rather than guess, so that it gives the same output however
a stream is cut.
"""

import html
import re
from collections.abc import Iterable
from typing import Final

from agent.guardrails.addresses import Addresses

LABEL, ADDRESS, TAG = 1_000, 4_000, 2_000
"""Characters after which a label, an address or a tag counts as plain text (a tag with its `<` escaped)."""
NESTED: Final = 8
"""Brackets inside brackets, and labels inside labels a half of it, that are followed: hostile text has thousands."""
BACK: Final = 80
"""Characters of what was said already that are looked back at."""
_START: Final = re.compile(
    r"!?\[|<(?=[A-Za-z/!?])|(?<![A-Za-z0-9+.-])(?:https?|ftp)://|(?<![\w./@-])www\.|^ {0,3}(?:```"
    r"|~~~)",
    re.IGNORECASE | re.MULTILINE,
)
_MAYBE_START: Final = re.compile(
    r"(?:!|<|(?<![A-Za-z0-9+.-])(?:h|ht|htt|https?:?/?|https?|f|ft|ftp:?/?)|(?<![\w./@-])w{1,3}|^ {1,3}"
    r"|^ {0,3}(?:`{1,2}|~{1,2}))\Z",
    re.IGNORECASE | re.MULTILINE,
)
_URL_END: Final = re.compile(r"[\s<>\"'`\u201c\u201d|\\^{}]")
_LOADS: Final = re.compile(
    r"</?\s*(?:img|image|picture|iframe|frame|frameset|embed|object|applet|video|audio|source|track|link|script"
    r"|style|svg|"
    r"base|meta|form|input|button|portal|math|template|noscript)\b",
    re.IGNORECASE,
)  # fmt: skip
_LOADING_ATTRIBUTE: Final = re.compile(
    r"[\s\"'/](?:src|srcset|poster|background|style|data|action|formaction|ping|xlink:href"
    r"|on\w{1,20})\s*=",
    re.IGNORECASE,
)
_HREF: Final = re.compile(r"[\s\"'/]href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)


class Links:
    """Defuses the answers of a run; the arguments are those of `Addresses`."""

    def __init__(self, outside: Iterable[str] = (), inside: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self._addresses = Addresses(outside, inside, hosts)

    def defuse(self, text: str) -> str:
        """A whole answer, defused."""
        return _defused(self._addresses, text, 0)

    def stream(self) -> "LinkStream":
        """The same for an answer that comes in pieces."""
        return LinkStream(self._addresses)


class LinkStream:
    """Defuses an answer piece by piece."""

    def __init__(self, links: Addresses, depth: int = 0) -> None:
        self._links = links
        self._depth = depth
        self._text = ""
        self._fence = ""
        self._said = ""
        """The end of what has been read, so that looking back sees the same however the text was cut."""

    def feed(self, piece: str) -> str:
        """What can be said for certain after one more piece."""
        self._text += piece
        return self._scan(final=False)

    def end(self) -> str:
        """The rest."""
        return self._scan(final=True)

    def _scan(self, *, final: bool) -> str:
        out: list[str] = []
        text, at = self._said + self._text, len(self._said)
        while at < len(text):
            step = self._fenced(text, at, final=final) if self._fence else self._step(text, at, final=final)
            if step is None:
                break
            said, at = step
            out.append(said)
        self._said = text[max(at - BACK, 0) : at]
        self._text = text[at:]
        return "".join(out)

    def _fenced(self, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
        """One line of a code block: nothing in it is loaded or linked."""
        end = text.find("\n", at, at + ADDRESS)
        if end < 0 and not final and len(text) - at < ADDRESS:
            return None
        line = text[at : end + 1 if end >= 0 else min(len(text), at + ADDRESS)]
        begins = at == 0 or text[at - 1] == "\n"
        if begins and re.fullmatch(rf" {{0,3}}{re.escape(self._fence)}{re.escape(self._fence[0])}*\s*", line):
            self._fence = ""
        return line, at + len(line)

    def _step(self, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
        start = _START.search(text, at)
        if start is None:
            partial = None if final else _MAYBE_START.search(text, max(at, len(text) - 8))
            end = partial.start() if partial is not None else len(text)
            return (text[at:end], end) if end > at else None
        if start.start() > at:
            return text[at : start.start()], start.start()
        if start[0].endswith("["):
            return _bracket(self._links, text, at, self._depth, final=final)
        if start[0] == "<":
            return _tag(self._links, text, at, final=final)
        if start[0].strip() in {"```", "~~~"}:
            return self._open_fence(text, at, final=final)
        return _bare(self._links, text, at, final=final)

    def _open_fence(self, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
        end = text.find("\n", at, at + ADDRESS)
        if end < 0 and not final and len(text) - at < ADDRESS:
            return None
        line = text[at : end + 1 if end >= 0 else min(len(text), at + ADDRESS)]
        mark = line.strip()[0]
        run = len(line.strip()) - len(line.strip().lstrip(mark))
        if mark == "`" and "`" in line.strip()[run:]:
            return line[: line.index(mark) + run], at + line.index(mark) + run
        self._fence = mark * run
        return line, at + len(line)


def _defused(links: Addresses, text: str, depth: int) -> str:
    stream = LinkStream(links, depth)
    return stream.feed(text) + stream.end()


def _label(links: Addresses, text: str, depth: int) -> str:
    """The text of a link, in which there may be images and links again."""
    if depth >= NESTED // 2:
        return re.sub(r"[\[\]<>!]|//|www\.", "", text)
    return _defused(links, text, depth + 1)


def _bracket(links: Addresses, text: str, at: int, depth: int, *, final: bool) -> tuple[str, int] | None:
    """`[label](address)`, `![label](address)`, `[label][name]`, `[name]: address`."""
    image = text[at] == "!"
    opening = at + image
    close = _closing(text, opening, "[", "]", LABEL)
    if close is None and not final:
        return None
    if close is None or close < 0:
        # Without its `!` it can become no image, whatever a renderer makes of the rest.
        return "[", opening + 1
    label = text[opening + 1 : close]
    if close + 1 >= len(text) and not final:
        return None
    follows = text[close + 1 : close + 2]
    if follows == "(":
        end = _closing(text, close + 1, "(", ")", ADDRESS)
        if end is None and not final and len(text) - close <= ADDRESS + 1:
            return None
        if end is not None and end > 0:
            return _inline(links, _label(links, label, depth), text[close + 2 : end], image=image), end + 1
        return f"[{_label(links, label, depth)}]", close + 1
    if follows == ":" and not image and not text[max(at - BACK, 0) : at].rpartition("\n")[2].strip(" >"):
        end = text.find("\n", close, close + ADDRESS)
        if end < 0 and not final and len(text) - close < ADDRESS:
            return None
        end = end if end >= 0 else min(len(text), close + ADDRESS)
        address = text[close + 2 : end].strip().split(" ")[0].strip("<>")
        if links.leads(address):
            return text[at:end], end
        return f"[{label}]: #link-removed", end
    # A name is resolved elsewhere in the answer; as an image it would be loaded from there.
    return f"[{_label(links, label, depth)}]", close + 1


def _inline(links: Addresses, said: str, target: str, *, image: bool) -> str:
    address = target.strip()
    address = address[1:].split(">")[0] if address.startswith("<") else re.split(r"\s+[\"'(]", address)[0]
    if image and links.loads(address):
        return f"![{said}]({target})"
    if links.leads(address):
        return f"[{said or links.host(address)}]({target})" if image else f"[{said}]({target})"
    return f"{said} {_removed(links, address)}".lstrip()


def _tag(links: Addresses, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
    """An HTML tag, a comment, or `<address>`."""
    end = _tag_end(text, at)
    if end is None and not final:
        return None
    if end is None or end < 0:
        return "&lt;", at + 1
    tag = text[at : end + 1]
    inner = tag[1:-1]
    if re.match(r"(?:https?|ftp)://\S+$", inner, re.IGNORECASE):
        return (tag if links.leads(inner) else _removed(links, inner)), end + 1
    if inner.startswith("!"):
        return "", end + 1
    if _LOADS.match(tag) or _LOADING_ATTRIBUTE.search(tag):
        found = re.search(r"(?:https?:)?//[^\s\"'<>)]+", html.unescape(tag))
        return (f"[removed: content of {links.host(found[0])}]" if found and tag[1] != "/" else ""), end + 1
    href = _HREF.search(tag)
    if href is not None and not links.leads(href[1] or href[2] or href[3] or ""):
        return f"{_removed(links, href[1] or href[2] or href[3] or '')} <a>", end + 1
    return tag, end + 1


def _bare(links: Addresses, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
    stop = _URL_END.search(text, at)
    if stop is None and not final and len(text) - at <= ADDRESS:
        return None
    end = min(stop.start() if stop is not None else len(text), at + ADDRESS)
    address = text[at:end].rstrip(".,;:!?)]*_")
    end = at + len(address) or end
    return (text[at:end] if links.leads(address) else _removed(links, address)), end


def _closing(text: str, opening: int, opens: str, closes: str, most: int) -> int | None:
    """Where the bracket at `opening` closes; None if not yet, -1 if it cannot any more."""
    limit = opening + most
    if text.find(closes, opening, limit) < 0:
        return None if len(text) < limit else -1
    depth = 0
    skip = False
    for at in range(opening, min(len(text), limit)):
        char = text[at]
        if skip:
            skip = False
        elif char == "\\":
            skip = True
        elif char == opens:
            depth += 1
            if depth > NESTED:
                return -1
        elif char == closes:
            depth -= 1
            if not depth:
                return at
        elif char == "\n" and text[at - 1] == "\n":
            return -1
    return None if len(text) < limit else -1


def _tag_end(text: str, at: int) -> int | None:
    """Where a tag ends, as browsers read it: not inside quotes. A comment ends with `-->`. None if not yet, -1 if it is
    none or too long."""
    limit = at + TAG
    late = None if len(text) < limit else -1
    if text.startswith("<!--", at):
        end = text.find("-->", at, limit)
        return end + 2 if end >= 0 else late
    if text.find(">", at, limit) < 0:
        return late
    quote = ""
    inner = 0
    for place in range(at + 1, min(len(text), limit)):
        char = text[place]
        if char == "<":
            inner += 1
            if inner > NESTED:
                return -1
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and text[place - 1] in "= \t\n":
            quote = char
        elif char == ">":
            return place
    return late


def _removed(links: Addresses, address: str) -> str:
    return f"[link to {links.host(address)} removed]"
