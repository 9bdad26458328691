"""Sanitizes links and images of an answer: nothing loads by itself, no address carries data to a third party.

A browser loads images at once, a link is one click away, and a text from outside can ask a model to put data into such
an address. Remote images become links. A link is removed if its host comes from outside and the address does not
(something was added), or if it contains words from outside.

Readers of Markdown differ in what they take for code, for a label or for the end of an address. A parser is one of
them, and needs the whole answer: what markdown-it-py takes for text is live for others. So nothing here depends on a
structure: each mark that makes something live (`](`, `]:`, `![`, `<`, `=` behind the name of an attribute, a
scheme, the dot of a host) is judged by itself, wherever it stands, in code as well. What must not be live is broken
at its mark, and what cannot be read is. The output does not depend on how a stream is cut.
"""

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final

from agent.policy.guardrails.addresses import AddressPolicy
from agent.policy.guardrails.code_blocks import CodeBlocks
from agent.policy.guardrails.drawn_code import label_fence
from agent.policy.guardrails.link_reading import (
    ADDRESS,
    LABEL,
    MAX_NAME,
    TAG,
    find_bare_start,
    find_ends,
    find_label_end,
    find_tag_end,
    is_linked,
    match_name,
    may_go_on,
    names_host,
    read_target,
    read_value,
)
from agent.policy.guardrails.live_names import (
    EMBEDDING_ATTRIBUTES,
    LINKING_ATTRIBUTES,
    LOADING_ATTRIBUTE,
    LOADING_ATTRIBUTES,
    LOADING_TAG,
    SCRIPTING_ATTRIBUTE,
)

MAX_NESTED: Final = 8
"""An address with more addresses in it is not read."""
_START: Final = re.compile(
    r"!\[|\](?=[ \t]*\(|:)|<(?=[A-Za-z/!?])|(?:https?|ftp)://|(?<![:/])//(?=[^\s/])|(?<![^\W_])www\.|="
    r"|(?<=[^\s.])\.(?=[^\s.])|(?<=[^\s@])@(?=[^\s@])|(?<!`)```|(?<!~)~~~",
    re.IGNORECASE,
)
_PARTIAL_START: Final = re.compile(
    r"(?:[!<]|\][ \t]*|(?:h|ht|htt|https?:?/?|https?|f|ft|ftp:?/?)|(?<![:/])/{1,2}|(?<![^\W_])w{1,3}"
    r"|(?<=[^\s.])\.|(?<=[^\s@])@|=|(?<!`)`{1,2}|(?<!~)~{1,2})\Z",
    re.IGNORECASE,
)
_OPENING: Final = frozenset(" \t\n([{\"'")
_MARKS: Final = frozenset({"](", "]:", "!["})
_TRAILING: Final = ".,;:!?)]*_"
_BEHIND: Final = _TRAILING + "~|}`'\"\u2018\u2019\u201c\u201d\xab\xbb>"
"""What behind an address carries nothing, also where a reader takes it into the address."""
_SCHEME_MARK: Final = re.compile(r"[^.@:&/\\]*([:&/\\])")
_ATTRIBUTE_NAME: Final = re.compile(r"\s*([\w:-]{1,40})")
_AUTOLINK: Final = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*")
_HREF: Final = re.compile(r"[\s\"'/]href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_EMBEDDED: Final = re.compile(r"(?:(?:https?|ftp):|//|www\.)[^\s\"'<>]+", re.IGNORECASE)
_URL_START: Final = re.compile(r"(?:https?|ftp)://|(?<![:/])//|www\.", re.IGNORECASE)
_TAG_NAME: Final = re.compile(r"</?[A-Za-z][\w:-]*")
_ANCHOR: Final = re.compile(r"<a(?:rea)?\s[^<]*\Z", re.IGNORECASE)
Step = tuple[str, int] | None
"""What a mark becomes, and where the text goes on; None if more text is needed."""


class LinkFilter:
    """Finds addresses in answers and edits out those that an `AddressPolicy`, whose arguments these are, refuses."""

    def __init__(
        self,
        outside: Iterable[str] = (),
        inside: Iterable[str] = (),
        hosts: Iterable[str] = (),
        *,
        remembered: Iterable[str] = (),
        is_whole: bool = True,
    ) -> None:
        self._addresses = AddressPolicy(outside, inside, hosts, remembered=remembered, is_whole=is_whole)

    def sanitize(self, text: str) -> str:
        """A whole answer, sanitized."""
        return self.create_stream().end(text)

    def create_stream(self) -> "LinkStream":
        """A filter for an answer that arrives in pieces."""
        return LinkStream(self._addresses)


class LinkStream:
    """Sanitizes an answer piece by piece."""

    def __init__(self, links: AddressPolicy) -> None:
        self._links = links
        self._text = ""
        self._at = 0
        """Where what has not been read begins in `_text`; before it is what looking back may need."""
        self._dropped = 0
        """Characters before `_text`: places beyond one call are counted from the beginning of the answer."""
        self._blocks = CodeBlocks()
        self._judged, self._named, self._broken = 0, 0, 0
        """Up to here addresses are known as allowed, hosts without a scheme are judged, and hosts are broken."""
        self._last = ""
        """The last character that went out."""
        self._cuts: list[int] = []
        """Places that get a space, since some readers would take the text behind them into an allowed address."""
        self._has_image = False
        """Whether a `![` has passed since the last empty line: any address behind it may be the image's."""
        self._has_named_image, self._has_definition = False, False
        """Whether an image may have passed whose address stands elsewhere, and an address from which none may load."""
        self._has_tag, self._has_loading_tag = False, False

    def feed(self, piece: str) -> str:
        """Adds a piece and returns the text that is now final."""
        return self._scan(piece, final=False)

    def end(self, piece: str = "") -> str:
        """Adds the last piece and returns the remaining text."""
        return self._scan(piece, final=True)

    def _scan(self, added: str, *, final: bool) -> str:
        self._text += added.replace("\x00", "\ufffd")  # as readers do: CommonMark, 2.3
        parts: list[str] = []
        text, at = self._text, self._at
        while at < len(text):
            step = self._scan_token(text, at, final=final)
            if step is None:
                break
            piece = self._cut(text, at, step)
            joint, beside = self._last + piece[:1], text[max(at - 1, 0) : at + 1]
            if joint != beside and (joint in _MARKS or (beside[-1] == "<" and joint[0] not in _OPENING)):
                piece = f" {piece}"  # what is put in makes no mark with the text beside it, and ends an address
            if self._has_image and "\n\n" in self._last + piece:
                self._has_image = False
            self._last = piece[-1:] or self._last
            self._blocks.feed(piece)
            parts.append(piece)
            at = step[1]
        keep = max(at - ADDRESS, 0)
        self._text, self._at = text[keep:], at - keep
        self._dropped += keep
        return "".join(parts)

    def _cut(self, text: str, at: int, step: tuple[str, int]) -> str:
        piece, end = step
        is_raw = piece == text[at:end]
        while self._cuts and self._cuts[0] <= self._dropped + end:
            place = self._cuts.pop(0) - self._dropped - at + len(piece) - (end - at)
            place = place if is_raw else len(piece)
            piece = f"{piece[:place]} {piece[place:]}"
        return piece

    def _scan_token(self, text: str, at: int, *, final: bool) -> Step:
        start = _START.search(text, at)
        if start is None:
            partial = None if final else _PARTIAL_START.search(text, max(at, len(text) - 8))
            end = partial.start() if partial is not None else len(text)
            return (text[at:end], end) if end > at else None
        if start.start() > at:
            return text[at : start.start()], start.start()
        mark = start[0]
        if mark == "![":
            return self._scan_image(text, at, final=final)
        if mark == "]":
            return self._scan_target(text, at, final=final)
        if mark == "<":
            return self._scan_tag(text, at, final=final)
        if mark == "=":
            return self._scan_attribute(text, at, final=final)
        if mark in ".@":
            return self._scan_name(text, at, final=final)
        if mark in ("```", "~~~"):
            return _scan_fence(text, at, final=final)
        return self._scan_url(text, at, len(mark), final=final)

    def _scan_image(self, text: str, at: int, *, final: bool) -> Step:
        """`![label](address)` or `![label][name]`. Without its `!` no reader can make it an image."""
        close = find_label_end(text, at + 1)
        if not final and len(text) - at < LABEL and (close is None or close + 1 >= len(text)):
            return None
        if close and text[close + 1 : close + 2] == "(":
            target = read_target(text, close + 1, final=final)
            if target is None:
                return None
            if not self._links.can_load(target[0]):
                return "[", at + 2
        elif self._has_definition or not self._blocks.is_code:
            return ("! [" if self._blocks.is_code else "["), at + 2
        else:
            self._has_named_image = True
        self._has_image = True
        return "![", at + 2

    def _scan_target(self, text: str, at: int, *, final: bool) -> Step:
        """`](address)` or `]: address`, whatever stands before it. Few readers take the first with a space within."""
        opening = at + 1 + len(text[at + 1 : at + ADDRESS]) - len(text[at + 1 : at + ADDRESS].lstrip(" \t"))
        target = read_target(text, opening, final=final)
        if target is None:
            return None
        mark, (address, end) = f"]{text[opening]}", target
        host, is_read = self._links.get_host(address), end - at < ADDRESS
        if opening > at + 1 and (self._blocks.is_code or self._links.can_write(address)):
            return text[at : opening + 1], opening + 1
        if not self._links.can_link(address) or (host and not is_read):
            scheme = _SCHEME_MARK.match(text, opening + 1)
            if host == "?" and is_read and mark == "](" and scheme is not None and not self._links.can_write(address):
                return f"] {text[opening : scheme.start(1)]}[{scheme[1]}]", scheme.end()
            if host == "?" or self._blocks.is_code or not is_read:
                return f"] {mark[1]}", opening + 1
            if end >= len(text) and not final:
                return None
            end += text[end : end + 1] == ")" and mark == "](" and text[end - 1] != ")"
            return f"] {mark[1:].strip('(')}{_format_removed(self._links, address)}", end
        if not self._links.can_load(address):
            if self._has_named_image if mark == "]:" else self._has_image:
                return f"] {mark[1]}", opening + 1
            self._has_definition = self._has_definition or mark == "]:"
        return text[at : opening + 1], opening + 1

    def _scan_tag(self, text: str, at: int, *, final: bool) -> Step:
        """An HTML tag, a comment, or `<address>`. What is a tag only to some readers is judged by its attributes."""
        is_code = self._blocks.is_code
        autolink = _AUTOLINK.match(text, at, at + ADDRESS)
        if autolink is not None:
            end, address = autolink.end(), autolink[0][1:]
            if end == len(text) and not final and end - at < ADDRESS:
                return None
            is_whole = text[end : end + 1] == ">"
            if end - at >= ADDRESS or (is_whole and not self._links.can_link(address)):
                return ("< ", at + 1) if is_code or not is_whole else (_format_removed(self._links, address), end + 1)
            if is_whole:
                return "<", at + 1
        if not is_code:
            step = _remove_tag(self._links, text, at, final=final)
            if step is None or step[1] > at:
                return step if step is None or self._blocks.is_prose else ("< ", at + 1)
        name = _TAG_NAME.match(text, at, at + MAX_NAME)
        if name is not None and name.end() == len(text) and not final:
            return None
        self._has_tag = self._has_tag or name is not None
        self._has_loading_tag = self._has_loading_tag or LOADING_TAG.match(text, at) is not None
        return "<", at + 1

    def _scan_attribute(self, text: str, at: int, *, final: bool) -> Step:
        """The `=` of an attribute with an address. Without a tag before it, it is none."""
        name = _ATTRIBUTE_NAME.match(text[max(at - MAX_NAME, 0) : at][::-1]) if self._has_tag else None
        attribute = name[1][::-1].lower() if name is not None else ""
        is_embedding = attribute in EMBEDDING_ATTRIBUTES or SCRIPTING_ATTRIBUTE.fullmatch(attribute) is not None
        loads = is_embedding or attribute in LOADING_ATTRIBUTES
        if not loads and attribute not in LINKING_ATTRIBUTES:
            return "=", at + 1
        value = read_value(text, at + 1, final=final)
        if value is None:
            return None
        if attribute == "href" and not _ANCHOR.search(text, max(at - TAG, 0), at):
            loads = True
        loads = loads and (self._has_loading_tag or attribute in ("background", "style"))
        may_use = self._links.can_load if loads else self._links.can_link
        addresses = _EMBEDDED.findall(html.unescape(value)) if is_embedding else [value]
        is_read = len(value) < LABEL or not (is_embedding or self._links.get_host(value))
        return ("=" if is_read and all(map(may_use, addresses)) else "[=]"), at + 1

    def _scan_url(self, text: str, at: int, length: int, *, final: bool) -> Step:
        """An address that is written out: renderers make a link of it."""
        opening = text[at : at + length]
        place = self._dropped + at
        if place < self._judged:
            return opening, at + length
        ends = find_ends(text, at, final=final)
        if ends is None:
            return None
        # `www.` within a host that was judged; what goes on behind that, and what a scheme begins, was not.
        is_judged = place < self._broken or place + len(text[at : ends[1]].rstrip(_BEHIND)) <= self._named
        before = text[max(at - 1, 0) : at]
        if before == "." and opening[-1] == "." and is_judged:
            return text[at : at + 3], at + 3
        address = text[at : ends[0]].rstrip(_TRAILING)
        if opening == "//" and ends[1] - at < ADDRESS and not names_host(address):
            return opening, at + length
        within = [at + length + match.start() for match in _URL_START.finditer(address[length:])]
        is_read = len(within) <= MAX_NESTED and ends[1] - at < ADDRESS
        if is_read and all(self._links.can_link(text[start : at + len(address)]) for start in (at, *within)):
            self._judged = self._dropped + ends[0]
            self._named = place + length + len(address[length:].split("/", maxsplit=1)[0])
            self._judge(text, [at, *within], ends)
            return opening, at + length
        if not self._blocks.is_code and not before.isalnum() and (before != "." or opening == "//"):  # within no host
            return _format_removed(self._links, address), at + max(len(address), length)
        self._broken = self._dropped + max(ends[0] if self._blocks.is_code else ends[1], at + length)
        return (opening[:-3] + "[:]//" if ":" in opening else opening.replace(".", "[.]")), at + length

    def _scan_name(self, text: str, at: int, *, final: bool) -> Step:
        """The first dot of a host without a scheme, or of an e-mail address, or its `@`: some renderers link them."""
        mark, place = text[at], self._dropped + at
        if place < self._broken:
            return f"[{mark}]", at + 1
        if place < self._named:
            return mark, at + 1
        if may_go_on(text, at) and not final:
            return None
        name = match_name(text, at)
        if name is None or not is_linked(name):
            self._named = self._dropped + (name.end("host") if name is not None else at)
            return mark, at + 1
        if "@" not in name[0] and not name["rest"]:
            is_code = self._blocks.is_code or self._blocks.is_span(text, at, final=final)
            if is_code is None:
                return None
            if is_code:  # a name of a program: no reader links it there
                self._named = self._dropped + name.end("host")
                return mark, at + 1
        ends = find_ends(text, name.start(), final=final)
        if ends is None:
            return None
        is_mailbox = "@" in name[0]
        scheme = "mailto:" if is_mailbox else "//"
        # Behind an e-mail address, readers take a path only.
        has_path = name["rest"] is not None and (not is_mailbox or name["rest"] == "/")
        end = max(ends[0], name.end("host")) if has_path else name.end("host")
        last = end if is_mailbox and name["rest"] and not has_path else ends[1]
        address = text[name.start() : end].rstrip(_TRAILING)
        is_allowed = (
            self._links.can_write_to(address) if is_mailbox and not has_path else self._links.can_link(scheme + address)
        )
        if is_allowed and ends[1] - at < ADDRESS:
            self._named = self._dropped + name.end("host")
            self._judge(text, [find_bare_start(name)], (end, last), scheme)
            return mark, at + 1
        self._broken = self._dropped + name.end("host")
        return f"[{mark}]", at + 1

    def _judge(self, text: str, starts: Sequence[int], ends: tuple[int, int], scheme: str = "") -> None:
        """Notes allowed addresses. What some readers take into one too must be allowed with it, or is cut off."""
        end, last = ends
        longer = (scheme + text[start:last].rstrip(_TRAILING) for start in starts)
        if not text[end:last].strip(_BEHIND) or all(map(self._links.can_link, longer)):
            return
        if text.startswith("](", end):
            target = read_target(text, end + 1, final=True)
            if target and self._links.get_host(target[0]) and self._links.can_link(target[0]):
                return
        # Behind a space, two slashes begin an address of their own.
        is_before = text[end] in ")]}|\\`<" or text[end].isspace() or text.startswith("//", end + 1)
        self._cuts = sorted({*self._cuts, self._dropped + end + (not is_before)})


def _format_removed(links: AddressPolicy, address: str) -> str:
    return f"[link to {_format_host(links, address)} removed]"


def _format_host(links: AddressPolicy, address: str) -> str:
    """The host of an address, for people: some renderers make a link of it again."""
    host = links.get_host(address)
    return host if host.count(".") < 2 or links.can_link(f"//{host}") else host.replace(".", "[.]")


def _remove_tag(links: AddressPolicy, text: str, at: int, *, final: bool) -> Step:
    """What stands for a tag that loads something or links to where it must not; the place stays for others."""
    end = find_tag_end(text, at)
    if end is None and not final:
        return None
    if end is None or end < 0 or text[at + 1] == "?":
        return "< ", at + 1
    tag = text[at : end + 1]
    if tag[1] == "!":
        return " ", end + 1
    if LOADING_TAG.match(tag) or LOADING_ATTRIBUTE.search(tag):
        match = re.search(r"(?:https?:)?//[^\s\"'<>)]+", html.unescape(tag))
        return (f"[removed: content of {_format_host(links, match[0])}]" if match and tag[1] != "/" else " "), end + 1
    for href in _HREF.finditer(tag):
        address = href[1] or href[2] or href[3] or ""
        if not links.can_link(address):
            return f"{_format_removed(links, address)} <a>", end + 1
    return "", at


def _scan_fence(text: str, at: int, *, final: bool) -> Step:
    """The marks of a fence, and its label if it names a language that chat pages draw."""
    end = text.find("\n", at, at + ADDRESS)
    if end < 0 and not final and len(text) - at < ADDRESS:
        return None
    line = text[at : end if end >= 0 else at + ADDRESS]
    marks = line[: len(line) - len(line.lstrip(line[0]))]
    info, other, _ = line[len(marks) :].partition(line[0])
    if other and line[0] == "`":  # code within a line
        return marks, at + len(marks)
    line = marks + info
    label = label_fence(text, at, len(line), marks, final=final)
    if label is None:
        return None
    return (marks, at + len(marks)) if label == line else (label, at + len(line))
