"""Where an answer may lead: whether an address is remote, and whether it carries what was read to somebody else."""

import html
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from agent.guardrails.carried import Carried

_LOCAL: Final = re.compile(
    r"(?!www\.)(?:[/#?.](?!/)|[\w-]+(?:[/?#.]|\Z)(?!.*:))|data:image/(?:png|jpe?g|gif|webp);|tel:|\Z", re.IGNORECASE
)


class Addresses:
    """Which addresses the answers of a run may show. `outside` are the texts that came from outside, `inside` what the
    caller and the operator wrote; `hosts` may be loaded and linked to whatever is in the address."""

    def __init__(self, outside: Iterable[str] = (), inside: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self._outside = "\n".join(outside)
        self._low = self._outside.lower()
        self._inside = "\n".join(inside)
        self._carried = Carried(self._outside, self._inside)
        self._hosts = frozenset(host.lower() for host in hosts)

    def host(self, address: str) -> str:
        """The host of an address, empty if it stays with us."""
        clean = _clean(address)
        if _LOCAL.match(clean):
            return ""
        if clean.lower().startswith("mailto:"):
            return clean.split("?")[0].rpartition("@")[2].lower() or "?"
        try:
            return urlsplit(clean if "://" in clean else f"https://{clean.lstrip('/')}").hostname or "?"
        except ValueError:
            return "?"

    def loads(self, address: str) -> bool:
        """Whether an image may be loaded from there."""
        host = self.host(address)
        return not host or host in self._hosts

    def leads(self, address: str) -> bool:
        """Whether a link may lead there."""
        clean = _clean(address)
        host = self.host(address)
        if not host or host in self._hosts:
            return True
        if not re.match(r"(?:https?:|ftp:)?//|www\.|mailto:", clean, re.IGNORECASE):
            return False
        if not self._outside or _stands(clean, self._inside) or _stands(clean, self._outside):
            return True
        named = any(parent in self._low for parent in [host.removeprefix("www."), *_parents(host)])
        if named:
            return False
        return not (self._carried.long_by(clean) if self._is_named_inside(host) else self._carried.by(clean))

    def _is_named_inside(self, host: str) -> bool:
        """Whether the caller or the operator wrote this host, whole."""
        return re.search(rf"(?<![\w.@-]){re.escape(host)}(?![\w-]|\.\w)", self._inside, re.IGNORECASE) is not None


def _clean(address: str) -> str:
    """An address as a browser reads it: entities undone, no controls or blanks, backslashes as slashes."""
    return re.sub(r"[\x00-\x20\x7f\u200b-\u200f\u2060\ufeff]", "", html.unescape(address)).replace("\\", "/")


def _stands(address: str, text: str) -> bool:
    """Whether an address stands in a text as a whole, not as the beginning of a longer one."""
    at = text.find(address)
    while at >= 0:
        after = text[at + len(address) : at + len(address) + 1]
        if not after or not (after.isalnum() or after in "/?&=#%-_~+"):
            return True
        at = text.find(address, at + 1)
    return False


def _parents(host: str) -> list[str]:
    """The domains a host belongs to, without the last label alone."""
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(1, len(labels) - 1)]
