"""Sanitizes links and images of an answer, so that nothing loads by itself and no address carries data to a third
party.

A browser loads images at once, and a link is one click away; a text from outside can ask a model to put data into such
an address. Remote images therefore become links. A link is removed if its host comes from outside and the address does
not (something was added), or if it contains words from outside.

One scanner reads from left to right and waits for more text instead of guessing, so that its output does not depend on
how a stream is cut.
"""

import html
import re
from collections.abc import Iterable
from typing import Final

from agent.policy.guardrails.addresses import AddressPolicy
from agent.policy.guardrails.drawn_code import label_fence, relabel_fences

LABEL, ADDRESS, TAG = 1_000, 4_000, 2_000
"""A longer label, address or tag counts as plain text (the `<` of the tag is escaped)."""
MAX_NESTING: Final = 8
"""Nesting depth of brackets; half of it for labels. Hostile text nests thousands."""
LOOKBACK_CHARS: Final = 80
"""Characters before an address definition that are looked at for the beginning of its line."""
_START: Final = re.compile(
    r"!?\[|<(?=[A-Za-z/!?])|(?<![A-Za-z0-9+.-])(?:https?|ftp)://|(?<![\w./@-])www\.|^ {0,3}(?:```|~~~)"
    r"|(?<!`)```|(?<!~)~~~",
    re.IGNORECASE | re.MULTILINE,
)
_PARTIAL_START: Final = re.compile(
    r"(?:!|<|(?<![A-Za-z0-9+.-])(?:h|ht|htt|https?:?/?|https?|f|ft|ftp:?/?)|(?<![\w./@-])w{1,3}|^ {1,3}"
    r"|^ {0,3}(?:`{1,2}|~{1,2})|(?<!`)`{1,2}|(?<!~)~{1,2})\Z",
    re.IGNORECASE | re.MULTILINE,
)
_BLANK_LINE: Final = re.compile(r"^[ \t]*\n", re.MULTILINE)
_HTML_LINE: Final = re.compile(r"^ {0,3}<[A-Za-z/!?]", re.MULTILINE)
_URL_END: Final = re.compile(r"[\s<>\"'`\u201c\u201d|\\^{}]")
_LOADING_TAG: Final = re.compile(
    r"</?\s*(?:img|image|picture|pre|textarea|iframe|frame|frameset|embed|object|applet|video|audio|source|track|link|script"
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


class LinkFilter:
    """Sanitizes the answers of a run; the arguments are those of `AddressPolicy`."""

    def __init__(
        self,
        outside: Iterable[str] = (),
        inside: Iterable[str] = (),
        hosts: Iterable[str] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        self._addresses = AddressPolicy(outside, inside, hosts, is_whole=is_whole)

    def sanitize(self, text: str) -> str:
        """A whole answer, sanitized."""
        return _sanitize(self._addresses, text, 0)

    def create_stream(self) -> "LinkStream":
        """A filter for an answer that arrives in pieces."""
        return LinkStream(self._addresses)


class LinkStream:
    """Sanitizes an answer piece by piece."""

    def __init__(self, links: AddressPolicy, depth: int = 0) -> None:
        self._addresses = links
        self._depth = depth
        self._text = ""
        self._fence = ""
        self._context = ""
        """The end of what has been read, so that looking back sees the same however the text was cut."""

    def feed(self, piece: str) -> str:
        """Adds a piece and returns the text that is now final."""
        self._text += piece
        return self._scan(final=False)

    def end(self, piece: str = "") -> str:
        """Adds the last piece and returns the remaining text."""
        self._text += piece
        return self._scan(final=True)

    def _scan(self, *, final: bool) -> str:
        parts: list[str] = []
        text, at = self._context + self._text, len(self._context)
        while at < len(text):
            step = (
                self._scan_fenced_line(text, at, final=final)
                if self._fence
                else self._scan_token(text, at, final=final)
            )
            if step is None:
                break
            piece, at = step
            parts.append(piece)
        self._context = text[max(at - ADDRESS, 0) : at]
        self._text = text[at:]
        return "".join(parts)

    def _scan_fenced_line(self, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
        """One line of a code block: nothing in it is loaded or linked, so it stays as it is. A line that another reader
        of Markdown may take for the beginning of a block is labelled as one.
        """
        end = text.find("\n", at, at + ADDRESS)
        if end < 0 and not final and len(text) - at < ADDRESS:
            return None
        line = text[at : end + 1 if end >= 0 else min(len(text), at + ADDRESS)]
        begins = at == 0 or text[at - 1] == "\n"
        if begins and re.fullmatch(rf" {{0,3}}{re.escape(self._fence)}{re.escape(self._fence[0])}*\s*", line):
            self._fence = ""
        return relabel_fences(line), at + len(line)

    def _scan_token(self, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
        start = _START.search(text, at)
        if start is None:
            partial = None if final else _PARTIAL_START.search(text, max(at, len(text) - 8))
            end = partial.start() if partial is not None else len(text)
            return (text[at:end], end) if end > at else None
        if start.start() > at:
            return text[at : start.start()], start.start()
        if start[0].endswith("["):
            return _scan_bracket(self._addresses, text, at, self._depth, final=final)
        if start[0] == "<":
            return _scan_tag(self._addresses, text, at, final=final)
        if start[0].strip() in {"```", "~~~"}:
            return self._scan_fence_start(text, at, final=final)
        return _scan_bare_url(self._addresses, text, at, final=final)

    def _scan_fence_start(self, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
        end = text.find("\n", at, at + ADDRESS)
        if end < 0 and not final and len(text) - at < ADDRESS:
            return None
        line = text[at : end + 1 if end >= 0 else min(len(text), at + ADDRESS)]
        mark = line.strip()[0]
        run = len(line.strip()) - len(line.strip().lstrip(mark))
        begins = at == 0 or text[at - 1] == "\n"
        is_code = mark == "`" and "`" in line.strip()[run:]
        if is_code or (not begins and relabel_fences(line) == line) or _is_in_html_block(text, at):
            return line[: line.index(mark) + run], at + line.index(mark) + run
        label = label_fence(text, at, len(line), mark * run, final=final)
        if label is None:
            return None
        if begins:  # elsewhere it begins no block, or one in a quote or a list
            self._fence = mark * run
        return label, at + len(line)


def _is_in_html_block(text: str, at: int) -> bool:
    """Whether the line at `at` continues a block of HTML, in which fences are text and tags are live.

    Such a block ends with an empty line (CommonMark 4.6); `pre` and `textarea`, which do not, are removed. Without one
    in sight it may be such a block.
    """
    begin = max(at - ADDRESS, 0)
    blank = [match.end() for match in _BLANK_LINE.finditer(text, begin, at)]
    return (not blank and begin > 0) or _HTML_LINE.search(text, blank[-1] if blank else 0, at) is not None


def _sanitize(links: AddressPolicy, text: str, depth: int) -> str:
    return LinkStream(links, depth).end(text)


def _sanitize_label(links: AddressPolicy, text: str, depth: int) -> str:
    """The text of a link, which can contain images and links itself."""
    if depth >= MAX_NESTING // 2:
        return re.sub(r"[\[\]<>!]|//|www\.", "", text)
    return _sanitize(links, text, depth + 1)


def _scan_bracket(links: AddressPolicy, text: str, at: int, depth: int, *, final: bool) -> tuple[str, int] | None:
    """Scans `[label](address)`, `![label](address)`, `[label][name]` or `[name]: address`."""
    image = text[at] == "!"
    opening = at + image
    close = _find_closing(text, opening, "[", "]", LABEL)
    if close is None and not final:
        return None
    if close is None or close < 0:
        # Without its `!` no renderer can make it an image.
        return "[", opening + 1
    label = text[opening + 1 : close]
    if close + 1 >= len(text) and not final:
        return None
    follows = text[close + 1 : close + 2]
    if follows == "(":
        end = _find_closing(text, close + 1, "(", ")", ADDRESS)
        if end is None and not final and len(text) - close <= ADDRESS + 1:
            return None
        if end is not None and end > 0:
            return _format_inline_link(
                links, _sanitize_label(links, label, depth), text[close + 2 : end], image=image
            ), end + 1
        return f"[{_sanitize_label(links, label, depth)}]", close + 1
    if follows == ":" and not image and not text[max(at - LOOKBACK_CHARS, 0) : at].rpartition("\n")[2].strip(" >"):
        end = text.find("\n", close, close + ADDRESS)
        if end < 0 and not final and len(text) - close < ADDRESS:
            return None
        end = end if end >= 0 else min(len(text), close + ADDRESS)
        address = text[close + 2 : end].strip().split(" ")[0].strip("<>")
        if links.can_link(address):
            return text[at:end], end
        return f"[{label}]: #link-removed", end
    # The name is defined elsewhere in the answer; an image would be loaded from that address.
    return f"[{_sanitize_label(links, label, depth)}]", close + 1


def _format_inline_link(links: AddressPolicy, label: str, target: str, *, image: bool) -> str:
    address = target.strip()
    address = address[1:].split(">")[0] if address.startswith("<") else re.split(r"\s+[\"'(]", address)[0]
    if image and links.can_load(address):
        return f"![{label}]({target})"
    if links.can_link(address):
        return f"[{label or links.get_host(address)}]({target})" if image else f"[{label}]({target})"
    return f"{label} {_format_removed_link(links, address)}".lstrip()


def _scan_tag(links: AddressPolicy, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
    """Scans an HTML tag, a comment, or `<address>`."""
    end = _find_tag_end(text, at)
    if end is None and not final:
        return None
    if end is None or end < 0:
        return "&lt;", at + 1
    tag = text[at : end + 1]
    inner = tag[1:-1]
    if re.match(r"(?:https?|ftp)://\S+$", inner, re.IGNORECASE):
        return (tag if links.can_link(inner) else _format_removed_link(links, inner)), end + 1
    if inner.startswith("!"):
        return "", end + 1
    if _LOADING_TAG.match(tag) or _LOADING_ATTRIBUTE.search(tag):
        match = re.search(r"(?:https?:)?//[^\s\"'<>)]+", html.unescape(tag))
        return (f"[removed: content of {links.get_host(match[0])}]" if match and tag[1] != "/" else ""), end + 1
    href = _HREF.search(tag)
    if href is not None and not links.can_link(href[1] or href[2] or href[3] or ""):
        return f"{_format_removed_link(links, href[1] or href[2] or href[3] or '')} <a>", end + 1
    return tag, end + 1


def _scan_bare_url(links: AddressPolicy, text: str, at: int, *, final: bool) -> tuple[str, int] | None:
    stop = _URL_END.search(text, at)
    if stop is None and not final and len(text) - at <= ADDRESS:
        return None
    end = min(stop.start() if stop is not None else len(text), at + ADDRESS)
    address = text[at:end].rstrip(".,;:!?)]*_")
    end = at + len(address) or end
    return (text[at:end] if links.can_show(address) else _format_removed_link(links, address)), end


def _find_closing(text: str, opening: int, opens: str, closes: str, most: int) -> int | None:
    """The position of the bracket that closes the one at `opening`; None if not yet, -1 if it never can."""
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
            if depth > MAX_NESTING:
                return -1
        elif char == closes:
            depth -= 1
            if not depth:
                return at
        elif char == "\n" and text[at - 1] == "\n":
            return -1
    return None if len(text) < limit else -1


def _find_tag_end(text: str, at: int) -> int | None:
    """The end of a tag as browsers read it, outside quotes; a comment ends with `-->`.

    Returns None if the tag is not complete yet, and -1 if it is not a tag or is too long.
    """
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
            if inner > MAX_NESTING:
                return -1
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and text[place - 1] in "= \t\n":
            quote = char
        elif char == ">":
            return place
    return late


def _format_removed_link(links: AddressPolicy, address: str) -> str:
    return f"[link to {links.get_host(address)} removed]"
