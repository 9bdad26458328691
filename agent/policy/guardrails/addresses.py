"""Decides whether an answer may link to an address, or load an image from it."""

import html
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from agent.policy.guardrails.exfiltration_check import ExfiltrationCheck

MAX_COMPARED_CHARS: Final = 2_000_000
"""More text from outside is searched for whole addresses only, and others are refused: words take 0.2 s then."""
_LOCAL: Final = re.compile(
    r"(?!www\.)(?:[/#?.](?!/)|[\w-]+(?:[/?#.]|\Z)(?!.*:))|data:image/(?:png|jpe?g|gif|webp);|tel:|\Z", re.IGNORECASE
)


class AddressPolicy:
    """Decides about the addresses in the answers of a run.

    `outside` are texts from outside, `inside` texts of the caller and the operator. Addresses on `hosts` are always
    allowed. `is_whole` is False if a part of the texts from outside is missing: then only addresses that are in the
    texts are allowed.
    """

    def __init__(
        self,
        outside: Iterable[str] = (),
        inside: Iterable[str] = (),
        hosts: Iterable[str] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        self._outside = "\n".join(outside)
        self._outside_lower = self._outside.lower()
        self._inside = "\n".join(inside)
        self._exfiltration_check = (
            ExfiltrationCheck(self._outside, self._inside)
            if is_whole and len(self._outside) <= MAX_COMPARED_CHARS
            else None
        )
        self._hosts = frozenset(host.lower() for host in hosts)

    def get_host(self, address: str) -> str:
        """The host of an address; empty for a local address."""
        clean = _canonicalize(address)
        if _LOCAL.match(clean):
            return ""
        if clean.lower().startswith("mailto:"):
            return clean.split("?")[0].rpartition("@")[2].lower() or "?"
        try:
            return urlsplit(clean if "://" in clean else f"https://{clean.lstrip('/')}").hostname or "?"
        except ValueError:
            return "?"

    def can_load(self, address: str) -> bool:
        """Whether an image may be loaded from the address."""
        host = self.get_host(address)
        return not host or host in self._hosts

    def can_link(self, address: str) -> bool:
        """Whether a link may point to the address."""
        clean = _canonicalize(address)
        host = self.get_host(address)
        if not host or host in self._hosts:
            return True
        if not re.match(r"(?:https?:|ftp:)?//|www\.|mailto:", clean, re.IGNORECASE):
            return False
        check = self._exfiltration_check
        if (
            (not self._outside and check is not None)
            or _contains_whole_address(clean, self._inside)
            or _contains_whole_address(clean, self._outside)
        ):
            return True
        named = any(
            parent in self._outside_lower for parent in [host.removeprefix("www."), *_list_parent_domains(host)]
        )
        if named or check is None:
            return False
        return not (check.has_long_leak(clean) if self._is_named_inside(host) else check.has_leak(clean))

    def can_show(self, address: str) -> bool:
        """Whether the address may be written out, where a renderer can make a link of it."""
        return self.can_link(address)

    def _is_named_inside(self, host: str) -> bool:
        """Whether the caller or the operator wrote this host in full."""
        return re.search(rf"(?<![\w.@-]){re.escape(host)}(?![\w-]|\.\w)", self._inside, re.IGNORECASE) is not None


class InertAddressPolicy(AddressPolicy):
    """Allows no link and no image, for words of a model that a person reads before deciding."""

    def can_load(self, address: str) -> bool:
        """Always False: nothing loads by itself."""
        return False

    def can_link(self, address: str) -> bool:
        """Whether the address stays within this page."""
        return not self.get_host(address)

    def can_show(self, address: str) -> bool:
        """Always True: an address that is written out hides nothing."""
        return True


def _canonicalize(address: str) -> str:
    """An address as a browser reads it: entities decoded, no control characters or spaces, slashes for
    backslashes.
    """
    return re.sub(r"[\x00-\x20\x7f\u200b-\u200f\u2060\ufeff]", "", html.unescape(address)).replace("\\", "/")


def _contains_whole_address(address: str, text: str) -> bool:
    """Whether a text contains the whole address, not only as the start of a longer one."""
    at = text.find(address)
    while at >= 0:
        after = text[at + len(address) : at + len(address) + 1]
        if not after or not (after.isalnum() or after in "/?&=#%-_~+"):
            return True
        at = text.find(address, at + 1)
    return False


def _list_parent_domains(host: str) -> list[str]:
    """The parent domains of a host, without the top-level domain."""
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(1, len(labels) - 1)]
