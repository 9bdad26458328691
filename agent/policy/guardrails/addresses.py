"""Decides whether an answer may link to an address, or load an image from it."""

import html
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

from agent.policy.guardrails.exfiltration_check import ExfiltrationCheck
from agent.policy.guardrails.link_reading import names_host

MAX_COMPARED_CHARS: Final = 2_000_000
"""More text from outside is searched for whole addresses only, and others are refused: words take 0.2 s then."""
MAX_DECISIONS: Final = 1_000
"""Decisions that are remembered: an answer names an address several times, and the texts can be long."""
_FOREIGN: Final = re.compile(r"//|[a-z][a-z0-9+.-]*:", re.IGNORECASE)
"""How an address begins that leaves the page it stands on."""
_OWN: Final = re.compile(r"data:image/(?:png|jpe?g|gif|webp);", re.IGNORECASE)
"""What leaves no page."""
_NUMBER: Final = re.compile(r"(?i:tel:)\+?[\d().\s/-]{1,24}(?:-[A-Z]{3,12})?")
"""One telephone number, as `1-800-FLOWERS` too. Behind a pause or an extension, the digits of `tel:+4612345,48213` are
sent to who answers.
"""
_NETWORK_LINK: Final = re.compile(r"(?:https?:|ftp:)?//|mailto:", re.IGNORECASE)
_LIVE: Final = re.compile(rf"(?:{_NETWORK_LINK.pattern})[^/]|tel:.|javascript:.|data:[^,]*,", re.IGNORECASE)
_LIVE_WITH_WORDS: Final = re.compile(r"[a-z][a-z0-9+.-]+://|sms:", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_NETWORK: Final = re.compile(r"(https?|ftp):/*", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:(?<![a-z])[a-z]+:)?//|mailto:", re.IGNORECASE)
_CONTINUES: Final = frozenset("/?&=#%-_~+")
_PRECEDES: Final = frozenset(".-_@+%")
_MAILBOX: Final = re.compile(r"((?:.*[^\w.+~-])?)([\w.+~-]+@.*)", re.DOTALL)
"""An e-mail address, and what stands before it without a space."""
_LABELS: Final = frozenset(
    ("admin", "author", "email", "mail", "mailto", "maintainer", "owner", "recipient", "reply", "sender", "username")
)
"""What settings and columns call an e-mail address: that such a word was also read proves nothing."""
_QUALIFIED_NAME: Final = re.compile(r"[a-z][a-z0-9+.-]*::", re.IGNORECASE)
"""`std::string`: a name of a program, which Markdown takes for an address where it stands between `<` and `>`."""


class AddressPolicy:
    """Decides which addresses an answer may contain. `LinkFilter` applies the decisions to the text of an answer.

    An address is refused if it could carry words of `outside` or `remembered` to somebody else. `outside` are texts
    from outside, `inside` texts of the caller and the operator. Addresses on `hosts` are always allowed. `is_whole` is
    False if a part of the texts from outside is missing: then only addresses that are in the texts are allowed.
    `remembered` are the caller's own words of other conversations: whole addresses in them are allowed.
    """

    def __init__(
        self,
        outside: Iterable[str] = (),
        inside: Iterable[str] = (),
        hosts: Iterable[str] = (),
        *,
        remembered: Iterable[str] = (),
        is_whole: bool = True,
    ) -> None:
        self._outside = "\n".join(outside)
        self._outside_lower = self._outside.lower()
        self._inside = "\n".join(inside)
        self._remembered = "\n".join(remembered)
        self._exfiltration_check = (
            ExfiltrationCheck(f"{self._outside}\n{self._remembered}", self._inside)
            if is_whole and len(self._outside) <= MAX_COMPARED_CHARS
            else None
        )
        self._hosts = frozenset(host.lower() for host in hosts)
        self._decisions: dict[str, bool] = {}

    def get_host(self, address: str) -> str:
        """The host of an address; empty for a local address."""
        return next(filter(None, map(_find_host, _list_readings(address))), "")

    def can_load(self, address: str) -> bool:
        """Whether an image may be loaded from the address."""
        return all(map(self._can_load, _list_readings(address)))

    def can_link(self, address: str) -> bool:
        """Whether a link may point to the address, as any reader understands it."""
        if address not in self._decisions:
            if len(self._decisions) >= MAX_DECISIONS:
                self._decisions.clear()
            self._decisions[address] = all(map(self._can_link, _list_readings(address)))
        return self._decisions[address]

    def can_write_to(self, mailbox: str) -> bool:
        """Whether an answer may name an e-mail address, with what some readers take into it: `Contact:anna@x.example`.

        One that the texts have may be written, behind words that were not read or that stand before it there.
        """
        if self.can_link(f"mailto:{mailbox}"):
            return True
        name = _MAILBOX.fullmatch(mailbox)
        if name is None or not self._is_written(name[2]):
            return False
        words = re.findall(r"[^\W_]+", name[1])
        pattern = r"[\W_]{1,3}".join([rf"(?<!\w){'[ /_-]'.join(words)}", re.escape(name[2])])
        texts = (self._inside, self._remembered, self._outside)
        return self._is_new(" ".join(word for word in words if word.lower() not in _LABELS)) or any(
            re.search(pattern, text, re.IGNORECASE) for text in texts
        )

    def can_write(self, address: str) -> bool:
        """Whether an answer may have an address in brackets behind others with a space between, as `[DB] (redis://db)`.

        Few readers take that for a link; words that are not an address may be written.
        """
        return all(map(self._can_write, _list_readings(address)))

    def _can_write(self, clean: str) -> bool:
        if clean.startswith("//") and not names_host(clean):
            return True
        if _LIVE.match(clean):
            return self._can_link(clean)
        check = self._exfiltration_check
        return not _LIVE_WITH_WORDS.match(clean) or (check is not None and not check.has_leak(clean))

    def _is_written(self, text: str) -> bool:
        texts = (self._inside, self._remembered, self._outside)
        return any(_contains_whole(text, one, is_bare=True) for one in texts)

    def _is_new(self, text: str) -> bool:
        check = self._exfiltration_check
        return check is not None and not check.has_leak(f"mailto:{text}@")

    def _can_load(self, clean: str) -> bool:
        host = _find_host(clean)
        return not host or host in self._hosts or _QUALIFIED_NAME.match(clean) is not None

    def _can_link(self, clean: str) -> bool:
        host = _find_host(clean)
        if not host or host in self._hosts:
            return True
        check = self._exfiltration_check
        if _QUALIFIED_NAME.match(clean):
            return check is not None and not check.has_leak(clean)
        if clean[:4].lower() == "tel:":
            return (not self._outside and check is not None) or self._is_written(unquote(clean[4:]))
        if not _NETWORK_LINK.match(clean):
            return False
        if not self._outside and check is not None:
            return True
        if any(_contains_whole_address(clean, own) for own in (self._inside, self._remembered)):
            return True
        parents = [host.removeprefix("www."), *_list_parent_domains(host)]
        named = any(parent in self._outside_lower for parent in parents)
        if named and _contains_whole_address(clean, self._outside):
            return True
        if named or check is None:
            return False
        return not (check.has_long_leak(clean) if self._is_named_inside(host) else check.has_leak(clean))

    def _is_named_inside(self, host: str) -> bool:
        """Whether the caller or the operator wrote this host in full."""
        return re.search(rf"(?<![\w.@-]){re.escape(host)}(?![\w-]|\.\w)", self._inside, re.IGNORECASE) is not None


def _list_readings(address: str) -> list[str]:
    """An address as browsers read it: backslashes are slashes, but for those that Markdown takes for escapes."""
    if "\\" not in address:
        return [_canonicalize(address)]
    return [_canonicalize(address), _canonicalize(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", address))]


def _canonicalize(address: str) -> str:
    """Entities decoded, no control characters or spaces, slashes for backslashes, two of them behind the scheme, which
    `www.` has for the renderers that link bare addresses.
    """
    plain = re.sub(r"[\x00-\x20\x7f\u200b-\u200f\u2060\ufeff]", "", html.unescape(address)).replace("\\", "/")
    if plain[:4].lower() == "www.":
        return f"http://{plain}"
    return _NETWORK.sub(r"\1://", plain, count=1) if _NETWORK.match(plain) else plain


def _find_host(clean: str) -> str:
    """The host of an address, `?` for one that has none, and "" for an address of the page itself."""
    if not _FOREIGN.match(clean) or _OWN.match(clean) or _NUMBER.fullmatch(unquote(clean)):
        return ""
    if clean.lower().startswith("mailto:"):
        mailbox, _, host = clean.split("?", maxsplit=1)[0].rpartition("@")
        return (mailbox and host.lower()) or "?"
    if not _AUTHORITY.match(clean):
        return "?"
    try:
        return urlsplit(clean).hostname or "?"
    except ValueError:
        return "?"


def _contains_whole_address(address: str, text: str) -> bool:
    """Whether a text contains an address, with whatever scheme: not as a part of a longer one."""
    bare = _SCHEME.sub("", address, count=1)
    return _contains_whole(address, text) or (
        bare not in ("", address)
        and (_contains_whole(bare, text, is_bare=True) or _contains_whole(f"www.{bare}", text, is_bare=True))
    )


def _contains_whole(address: str, text: str, *, is_bare: bool = False) -> bool:
    at = text.find(address)
    while at >= 0:
        after = text[at + len(address) : at + len(address) + 1]
        before = text[at - 1 : at] if is_bare else ""
        if not (after.isalnum() or after in _CONTINUES) and not (before.isalnum() or before in _PRECEDES):
            return True
        at = text.find(address, at + 1)
    return False


def _list_parent_domains(host: str) -> list[str]:
    """The parent domains of a host, without the top-level domain."""
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(1, len(labels) - 1)]
