"""Personal data that has a form: found by pattern, kept only if its checksum or its own rules hold.

What is read is the text without disguises (`views.py`); places are those of the text as it came.
Names and street addresses have no form; finding them takes a model, which may join as a further `Guardrail`.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple

from stdnum import iban, luhn
from stdnum.exceptions import ValidationError

from agent.guardrails.emails import emails
from agent.guardrails.identities import identities
from agent.guardrails.models import Finding, Guarded, GuardrailsInput
from agent.guardrails.phones import phones
from agent.guardrails.spans import Span
from agent.guardrails.views import View, parted, plain

_DASHES: Final = re.compile(r"(?<=[0-9A-Z])[\u2010-\u2015\u2212](?=[0-9A-Z])")
_CARD: Final = re.compile(
    r"(?<![\w.,/#-])(?:\d(?:[ \t]{0,2}\d|[ ]?-[ ]?\d){11,18}"
    r"|\d{4}(?P<mark>[._/])(?:\d{4}(?P=mark)\d{4}(?P=mark)\d{1,7}|\d{6}(?P=mark)\d{4,5}))(?![\w])(?![.,-]\d)"
    r"|(?<=#)\d(?:[ -]?\d){11,18}(?![\w])"
)
_CARD_WORDS: Final = re.compile(
    r"card|karte|kort|carte|tarjeta|carta|visa|master|amex|maestro|diners"
    r"|discover|credit|kredit|\bcc\b|\bpan\b",
    re.IGNORECASE,
)
_CARD_NOT: Final = re.compile(
    r"\b(?:ref|reference|order|ticket|tracking|invoice|serial|imei|isbn|article|part|item|parcel|bestellung|ordernr)"
    r"\.?(?: (?:number|no\.?|nr\.?|id))?[ :#]{0,3}\Z",
    re.IGNORECASE,
)
"""Right before a number: whose it is. One in ten numbers passes Luhn's check."""
_ISSUERS: Final = re.compile(
    r"4\d{12}(?:\d{3}|\d{6})?|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689])\d{11,16}|6(?:011|4[4-9]|5)\d{12,15}"
    r"|62\d{14,17}|35\d{14}|(?:2131|1800)\d{11}|(?:5018|5020|5038|5[678]|6304|6390|67)\d{8,17}"
)  # fmt: skip
"""Numbers that card issuers give out. With a word for card before it, any number that passes Luhn's check is one."""
_IBAN: Final = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?:[ .-]?[A-Za-z0-9]{2,4}){3,9}(?:[ .-]?[A-Za-z0-9])?")
_IPV4: Final = re.compile(
    r"(?<![\w.<>~^])(?<![<>~!=^]=)(?<![A-Za-z]/)(?:(?<!:)::ffff:)?(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)", re.IGNORECASE
)
"""Neither what a requirement asks for (`>=1.2.0.0`) nor what a browser calls itself (`Chrome/120.0.0.0`)."""
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_DOTTED: Final = re.compile(r"\d\.\d{1,3}\.\d")
_COLONS: Final = re.compile(r":[0-9A-Fa-f]{0,4}:")
"""What every such address holds; most texts hold none of it."""
_LONG_GROUP: Final = re.compile(r"[0-9A-Fa-f]{3}")
_VERSION: Final = re.compile(
    r"(?:\b(?:version|release|v|ver|build|firmware|rev|section|chapter|clause|paragraph|figure|table|appendix|oid"
    r"|abschnitt|kapitel|avsnitt)\.?|§)[\s:=\"']{0,3}\Z",
    re.IGNORECASE,
)
_EXAMPLES: Final = tuple(map(IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))
_EXAMPLES_V6: Final = IPv6Network("2001:db8::/32")
"""Addresses that stand for somebody's in examples (RFC 5737, RFC 3849): whoever makes a text anonymous, or
tries this out, writes them."""
BEFORE: Final = 48
"""Characters before a number in which a word may say what it is."""


class Kind(NamedTuple):
    """A kind of personal data and how it is found. Earlier kinds win where spans overlap."""

    name: str
    find: Callable[[str], Iterator[Span]]


class PiiDetector:
    """Finds personal data; all its work is linear in the text's length."""

    categories: frozenset[Guarded] = frozenset({"pii"})

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """Findings that do not overlap, in the order of the text."""
        return [
            Finding(category="pii", kind=name, start=span.start, end=span.end, detail=span.why)
            for name, span in personal(request.content)
        ]


def personal(text: str) -> list[tuple[str, Span]]:
    """All personal data of a text by kind, without overlaps, in order."""
    taken: list[tuple[str, Span]] = []
    covered = bytearray(len(text))
    for view in _views(text):
        for kind in _KINDS:
            for span in kind.find(view.text):
                start, end = view.span(span.start, span.end)
                if not any(covered[start:end]):
                    covered[start:end] = b"\x01" * (end - start)
                    taken.append((span.kind or kind.name, span._replace(start=start, end=end)))
    return sorted(taken, key=lambda found: found[1].start)


def _views(text: str) -> Iterator[View]:
    """The text without disguises, every dash within a number as `-`; where invisible characters stand between letters,
    also with blanks in their places."""
    apart = parted(text)
    for said in (text,) if apart is None else (text, apart):
        view = plain(said)
        yield View(view.text if view.text.isascii() else _DASHES.sub("-", view.text), view.places)


def _cards(text: str) -> Iterator[Span]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(set(digits)) > 1 and luhn.is_valid(digits):
            given = text[max(0, match.start() - 1) : match.start()] == "="
            known = len(digits) >= 13 and not given and _ISSUERS.fullmatch(digits) is not None
            before = max(0, match.start() - BEFORE)
            if _CARD_WORDS.search(text, before, match.start()) or (
                known and not _CARD_NOT.search(text, before, match.start())
            ):
                yield Span(match.start(), match.end(), "a card number whose check digit is right")


def _ibans(text: str) -> Iterator[Span]:
    at = 0
    while (match := _IBAN.search(text, at)) is not None:
        at = match.start() + 4
        for end in range(match.end(), match.start() + 14, -1):
            if (end == len(text) or not text[end].isalnum()) and _is_iban(text[match.start() : end]):
                yield Span(match.start(), end, "an IBAN whose check digits are right")
                at = end  # what came along with it may begin with the next one
                break


@lru_cache(maxsize=4096)
def _is_iban(number: str) -> bool:
    try:
        iban.validate(number, check_country=False)  # which banks there are is not known as well as it thinks
    except ValidationError:
        return False
    return True


def _addresses(text: str) -> Iterator[Span]:
    for needs, pattern in ((_DOTTED, _IPV4), (_COLONS, _IPV6)):
        for match in pattern.finditer(text) if needs.search(text) else ():
            if _is_public(match[0]) and not _VERSION.search(text, max(0, match.start() - 24), match.start()):
                yield Span(match.start(), match.end(), "a public IP address")


def _is_public(said: str) -> bool:
    """Whether this is an address that somebody may have. A shortened IPv6 address must be one of 2000::/3 (RFC 4291),
    which `a::b` in a program is not; one of eight groups must have a long one, which hardware addresses have not."""
    try:
        address = ip_address(said.lower().removeprefix("::ffff:") if "." in said else said)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        whole = "::" not in said and _LONG_GROUP.search(said) is not None
        return (address.is_global or address in _EXAMPLES_V6) and (whole or int(address) >> 125 == 1)
    return (address.is_global and not address.is_multicast) or any(address in net for net in _EXAMPLES)


_KINDS: Final = (
    Kind("EMAIL", emails),
    Kind("IBAN", _ibans),
    Kind("CARD", _cards),
    Kind("ID", identities),
    Kind("IP", _addresses),
    Kind("PHONE", phones),
)
