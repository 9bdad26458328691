"""The beginning of a question: where something goes, and the beginning and size of what leaves.

A person who allows everything that is asked has read at least this. Plain text: nothing in it is live, and no
invisible character makes an address look like another one.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from agent.core.events import ApprovalItem
from agent.core.json_texts import write_text
from agent.core.models import ArgumentRole
from agent.policy.guardrails.plain_text import format_literal

FIRST_CHARS: Final = 120
"""Characters of each value that are shown."""
LAST_CHARS: Final = 60
"""Characters of the end of a long place."""
MAX_VALUES: Final = 5
"""Addresses of one host, and texts, that are shown; of the others the number."""
LONG_CHARS: Final = 80
"""Characters from which on an argument without a role is taken for a text that leaves."""
_MAIL: Final = re.compile(r"(?:mailto:)?[^\s@]+@([^\s@?]+)\S*", re.IGNORECASE)
_NAMED: Final = re.compile(r"(?<![^<>])[^<>]*<([^<>]*)>")
"""An address behind a name, which may look like another address."""
_BETWEEN: Final = re.compile(r"[,;\n]")
_DOT: Final = re.compile("[.\u3002]")
_IGNORED: Final = dict.fromkeys(map(ord, "\xad\u200b\u2060\ufeff"))
"""Invisible characters that names of hosts lose (UTS 46)."""
_SERVER_MARK: Final = "__"


def format_outgoing(items: Sequence[ApprovalItem]) -> list[str]:
    """The lines that say where the calls of a question go and what leaves with them; none for calls that send
    nothing.
    """
    sending = [item for item in items if item.roles and (item.changes or "where" in item.roles.values())]
    places = _list_places(sending)
    texts = list(dict.fromkeys(text for item in sending for text in _iter_texts(item)))
    lines = []
    if places:
        lines.append(f"**Goes to**: {'; '.join(places)}")
    if texts:
        lines.append(f"**{'What leaves' if places else 'What is written'}**: {_join(texts)}")
    return lines


def _list_places(items: Sequence[ApprovalItem]) -> list[str]:
    """All places where calls go, those of one host together, the rarest host first: one address of a stranger among
    seventy colleagues is the one that a person must see. None is left out."""
    places: dict[str, dict[str, None]] = {}
    for place, address in (pair for item in items for pair in _iter_places(item)):
        addresses = places.setdefault(place, {})
        if address:
            addresses[address] = None
    ordered = sorted(places.items(), key=lambda entry: len(entry[1]))
    return [_format_place(place, [*addresses]) for place, addresses in ordered]


def _format_place(place: str, addresses: Sequence[str]) -> str:
    if not addresses:
        return place
    more = f" and {len(addresses) - MAX_VALUES} more" if len(addresses) > MAX_VALUES else ""
    return f"{place} (in {', '.join(map(format_ends, addresses[:MAX_VALUES]))}{more})"


def _iter_places(item: ApprovalItem) -> Iterator[tuple[str, str]]:
    """Yields the places where a call goes as Markdown, each with the address that is there, or "": addresses count
    without a role too. Of a server's tool without any place, it is the server.
    """
    values = [*_iter_values(item, "where"), *(value for value in _iter_values(item, "other") if _find_host(value))]
    server, mark, _ = item.tool.partition(_SERVER_MARK)
    if not values and mark:
        yield f"the server {format_literal(server)}", ""
    for value in values:
        host = _find_host(value)
        yield format_ends(host or value), value if host and host != value else ""


def _iter_texts(item: ApprovalItem) -> Iterator[str]:
    """Yields the texts that a call carries: its content, and what stands behind the host of an address."""
    for value in _iter_values(item, "content"):
        yield _describe(value)
    for value in _iter_values(item, "other"):
        if len(value) > LONG_CHARS:
            yield _describe(value)
    for value in _iter_values(item, "where"):
        parts = urlsplit(value) if _is_address(value) else None
        carried = parts._replace(scheme="", netloc="").geturl() if parts is not None else ""
        if carried.strip("/"):
            yield _describe(carried)


def _iter_values(item: ApprovalItem, role: ArgumentRole) -> Iterator[str]:
    """Yields the values of the arguments with a role as text, those of lists and several recipients one by one."""
    for name, value in item.args.items():
        if item.roles.get(name) == role and value not in (None, "", [], {}):
            for one in value if isinstance(value, list) else [value]:
                text = write_text(one)
                yield from [text] if role == "content" else _split_recipients(text)


def _split_recipients(text: str) -> list[str]:
    """The e-mail addresses of a text that holds several; else the text."""
    parts = [part.strip() for part in _BETWEEN.split(text) if part.strip()]
    return parts if len(parts) > 1 and all("@" in part and not _is_address(part) for part in parts) else [text]


def _is_address(value: str) -> bool:
    """Whether a text is a web address that can be taken apart."""
    try:
        return bool(urlsplit(value.strip()).hostname)
    except ValueError:
        return False


def _find_host(value: str) -> str:
    """The host of a web or mail address, as the network knows it; empty for other places."""
    mail = _MAIL.fullmatch(_NAMED.sub(r"\1", value).strip())
    if _is_address(value):
        host = urlsplit(value.strip()).netloc.rpartition("@")[2].lower()
    else:
        host = mail[1].lower() if mail else ""
    # As IDNA 2008, which keeps the sharp s: Python's codec makes `strasse.example` of `stra\xdfe.example`.
    labels = _DOT.split(unicodedata.normalize("NFKC", host.translate(_IGNORED)))
    return ".".join(one if one.isascii() else f"xn--{one.encode('punycode').decode('ascii')}" for one in labels)


def _describe(text: str) -> str:
    """The first words of a text and its size."""
    return f"{_shorten(text)} ({len(text):,} characters)"


def _shorten(text: str) -> str:
    return format_literal(text if len(text) <= FIRST_CHARS else f"{text[:FIRST_CHARS]}…")


def format_ends(text: str) -> str:
    """A text as a literal: of a long one the beginning and the end, with its length."""
    if len(text) <= FIRST_CHARS + LAST_CHARS:
        return format_literal(text)
    return f"{format_literal(f'{text[:FIRST_CHARS]} … {text[-LAST_CHARS:]}')} ({len(text):,} characters)"


def _join(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - MAX_VALUES} more" if len(parts) > MAX_VALUES else ""
    return "; ".join(parts[:MAX_VALUES]) + more
