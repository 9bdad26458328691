"""Where an answer may lead: whether an address is remote, and whether it carries what was read to somebody else."""

import base64
import html
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import unquote, urlsplit

SHORTEST: Final = 8
"""Fewer letters and digits in a part of an address count as none of ours."""

_LOCAL: Final = re.compile(
    r"(?!www\.)(?:[/#?.](?!/)|[\w-]+(?:[/?#.]|\Z)(?!.*:))|data:image/(?:png|jpe?g|gif|webp);|tel:|\Z", re.IGNORECASE
)


class Addresses:
    """Which addresses the answers of a run may show. `outside` are the texts that came from outside, `inside` what the
    caller and the operator wrote; `hosts` may be loaded and linked to whatever is in the address."""

    def __init__(self, outside: Iterable[str] = (), inside: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self._outside = "\n".join(outside)
        self._low = self._outside.lower()
        self._squeezed = _squeeze(self._outside)
        self._inside = "\n".join(inside)
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
        return not named and not self._carries(clean)

    def _carries(self, address: str) -> bool:
        """Whether a part of the address says something that came from outside, in any of the usual encodings."""
        rest = address.split("://", 1)[-1]
        for part in re.split(r"[/?&=#;,.]", rest):
            for said in _readings(part):
                flat = _squeeze(said)
                if len(flat) >= SHORTEST and flat in self._squeezed:
                    return True
        return False


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


def _squeeze(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def _readings(part: str) -> list[str]:
    """A part of an address, and what it says when decoded."""
    plain = unquote(part)
    said = [plain, plain[::-1]]
    for text in (plain, part):
        code = text.replace("-", "+").replace("_", "/").rstrip("=")
        # What is no code, or codes no text, is read as it stands: binascii and decoding raise ValueErrors.
        with suppress(ValueError):
            said.append(base64.b64decode(code + "=" * (-len(code) % 4), validate=True).decode())
        with suppress(ValueError):
            said.append(bytes.fromhex(text).decode())
    return said
