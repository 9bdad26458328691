"""Finds personal data that has a format: matched by pattern, kept only if the checksum or other rules hold.

The detectors read the text without disguises (`deobfuscation.py`); positions are those in the original. Names and
street addresses have no format; a model that finds them can be added as a further `Guardrail`.
"""

# ruff: noqa: RUF001 - punctuation and letters of many languages are meant

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from itertools import islice
from typing import Final, NamedTuple

from agent.policy.guardrails.deobfuscation import DeobfuscatedText, normalize_disguises, split_at_invisible
from agent.policy.guardrails.models import Finding, GuardedCategory, GuardrailsInput
from agent.policy.guardrails.phones import find_phones
from agent.policy.guardrails.spans import Span, has_words, iter_matches

MAX_LOCAL_CHARS: Final = 64
"""Characters before the `@` (RFC 5321)."""
_AT: Final = re.compile(
    r"@|%40|&#0{0,5}64;|&#x0{0,5}40;|&commat;|\\u0040|[ \t]?[(\[{<][ \t]?(?:at|@)[ \t]?[)\]}>][ \t]?"
    r"| at (?=[\w-]{1,63}(?: dot [\w-]{1,63}){0,2} dot "
    r"(?:com|org|net|edu|gov|info|io|eu|uk|se|de|at|ch|fr|es|it|nl|no|dk|fi|pl)\b)",
    re.IGNORECASE,
)  # fmt: skip
_AT_MARKERS: Final = (
    "@", "%40", "&#", "&commat", "\\u0040", " dot ", *(f"at{space}{end}" for space in ("", " ", "\t") for end in ")]}>")
)  # fmt: skip
"""Every match of `_AT` contains one of these. Most texts contain none, and searching for them is cheaper."""
_LOCAL: Final = re.compile(r"[\w.!#$%&'*+^`{|}~-]{1,64}\Z")
_QUOTED: Final = re.compile(r'"[^"\n@]{1,62}"\Z')
_DOT: Final = r"(?:\.|[ \t]?[(\[{<][ \t]?(?:dot|punkt|\.)[ \t]?[)\]}>][ \t]?| dot )"
_DOMAIN: Final = re.compile(
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])|\[\d{1,3}(?:\.\d{1,3}){3}\]"
)
_SPELLED_DOMAIN: Final = re.compile(rf"(?:[^\W_][\w-]{{0,62}}{_DOT}){{1,8}}[^\W\d_]{{2,24}}(?![\w-])", re.IGNORECASE)
_LEADING_PUNCTUATION: Final = ".!#$%&'*+^`{|}~-"
_CODE_HOST_USERS: Final = frozenset(("git", "hg", "svn"))
"""Shared users of code hosts: `git@github.com` is nobody's address."""


def find_emails(text: str) -> Iterator[Span]:
    """Yields the e-mail addresses of a text."""
    low = text.lower()
    for at in _AT.finditer(text) if any(map(low.__contains__, _AT_MARKERS)) else ():
        local = _LOCAL.search(text, max(0, at.start() - MAX_LOCAL_CHARS), at.start())
        quoted = _QUOTED.search(text, max(0, at.start() - MAX_LOCAL_CHARS), at.start()) if local is None else None
        domain = (_DOMAIN if at[0] == "@" else _SPELLED_DOMAIN).match(text, at.end())
        if domain is None or (local is None and quoted is None):
            continue
        if local is None:
            start = quoted.start() if quoted is not None else at.start()
        else:
            start = local.end() - len(local[0].lstrip(_LEADING_PUNCTUATION))
        if start < at.start() and text[start : at.start()] not in _CODE_HOST_USERS:
            yield Span(start, domain.end(), "an e-mail address")


_DIGIT: Final = re.compile(r"\d")
_DASHES: Final = re.compile(r"(?<=[0-9A-Z])[\u2010-\u2015\u2212](?=[0-9A-Z])")
_CARD: Final = re.compile(
    r"(?<![\w.,/#-])(?:\d(?:[ \t]{0,2}\d|[ ]?-[ ]?\d){11,18}"
    r"|\d{4}(?P<mark>[._/])(?:\d{4}(?P=mark)\d{4}(?P=mark)\d{1,7}|\d{6}(?P=mark)\d{4,5}))(?![\w])(?![.,-]\d)"
    r"|(?<=#)\d(?:[ -]?\d){11,18}(?![\w])"
)
_TWELVE_DIGITS: Final = re.compile(r"\d(?:[ \t._/-]{0,3}\d){11}")
"""Every such number contains this, and most texts do not."""
_CARD_WORDS: Final = re.compile(
    r"card|karte|kort|carte|tarjeta|carta|visa|master|amex|maestro|diners"
    r"|discover|credit|kredit|\bcc\b|\bpan\b",
    re.IGNORECASE,
)
_OTHER_NUMBER_LABEL: Final = re.compile(
    r"\b(?:ref|reference|order|ticket|tracking|invoice|serial|imei|isbn|article|part|item|parcel|bestellung|ordernr)"
    r"\.?(?: (?:number|no\.?|nr\.?|id))?[ :#]{0,3}\Z",
    re.IGNORECASE,
)
"""A label directly before the number that excludes a card. One in ten numbers passes the Luhn check."""
_ISSUERS: Final = re.compile(
    r"4\d{12}(?:\d{3}|\d{6})?|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689])\d{11,16}|6(?:011|4[4-9]|5)\d{12,15}"
    r"|62\d{14,17}|35\d{14}|(?:2131|1800)\d{11}|(?:5018|5020|5038|5[678]|6304|6390|67)\d{8,17}"
)  # fmt: skip
"""Number ranges of card issuers. After a word for a card, any number that passes the Luhn check counts."""
_IBAN: Final = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?:[ .-]?[A-Za-z0-9]{2,4}){3,9}(?:[ .-]?[A-Za-z0-9])?")
_IBAN_DIGITS: Final = re.compile(r"\d\d(?:[ .-]?[A-Za-z0-9]{2,4}){3}")
"""Every such number contains this, and most texts do not."""
_IPV4: Final = re.compile(
    r"(?<![\w.<>~^])(?<![<>~!=^]=)(?<![A-Za-z]/)(?:(?<!:)::ffff:)?(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)", re.IGNORECASE
)
"""Excludes version requirements (`>=1.2.0.0`) and browser versions (`Chrome/120.0.0.0`)."""
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_DOTTED: Final = re.compile(r"\d\.\d{1,3}\.\d")
_COLONS: Final = re.compile(r":[0-9A-Fa-f]{0,4}:")
"""Every such address contains this, and most texts do not."""
_LONG_GROUP: Final = re.compile(r"[0-9A-Fa-f]{3}")
_VERSION: Final = re.compile(
    r"(?:\b(?:version|release|v|ver|build|firmware|rev|section|chapter|clause|paragraph|figure|table|appendix|oid"
    r"|abschnitt|kapitel|avsnitt)\.?|§)[\s:=\"']{0,3}\Z",
    re.IGNORECASE,
)
_EXAMPLE_NETWORKS: Final = tuple(map(IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))
_EXAMPLE_NETWORK_V6: Final = IPv6Network("2001:db8::/32")
"""Documentation addresses (RFC 5737, RFC 3849). They count, because anonymized texts and tests use them."""
CONTEXT_BEFORE: Final = 48
"""Characters before a number in which a word can identify it."""


class PiiKind(NamedTuple):
    """A kind of personal data and its finder. Earlier kinds win if spans overlap."""

    name: str
    find: Callable[[str], Iterator[Span]]
    min_digits: int
    """The fewest digits of such data. Texts with fewer in all are not searched."""


class PiiDetector:
    """Finds personal data in time linear in the text's length."""

    categories: frozenset[GuardedCategory] = frozenset({"pii"})

    def find(self, request: GuardrailsInput) -> list[Finding]:
        """Findings without overlaps, in the order of the text."""
        return [
            Finding(category="pii", kind=name, start=span.start, end=span.end, detail=span.reason)
            for name, span in find_personal_data(request.content)
        ]


def find_personal_data(text: str) -> list[tuple[str, Span]]:
    """All personal data of a text with its kind, without overlaps, in order."""
    matches: list[tuple[str, Span]] = []
    covered = bytearray(len(text))
    for view in _iter_views(text):
        digits = sum(1 for _ in islice(_DIGIT.finditer(view.text), _MOST_DIGITS))
        for kind in _PII_KINDS:
            for span in kind.find(view.text) if digits >= kind.min_digits else ():
                start, end = view.to_original_span(span.start, span.end)
                if not any(covered[start:end]):
                    covered[start:end] = b"\x01" * (end - start)
                    matches.append((span.kind or kind.name, span._replace(start=start, end=end)))
    return sorted(matches, key=lambda match: match[1].start)


def _iter_views(text: str) -> Iterator[DeobfuscatedText]:
    """Yields the text without disguises, with `-` for every dash within a number.

    If invisible characters stand between letters, also yields it with spaces for them.
    """
    split_text = split_at_invisible(text)
    for source in (text,) if split_text is None else (text, split_text):
        view = normalize_disguises(source)
        yield view if view.text.isascii() else DeobfuscatedText(_DASHES.sub("-", view.text), view.positions)


def _find_cards(text: str) -> Iterator[Span]:
    if not _TWELVE_DIGITS.search(text):
        return
    from stdnum import luhn  # noqa: PLC0415 - few texts contain twelve digits

    for match in iter_matches(_CARD, text):
        digits = re.sub(r"\D", "", match[0])
        if len(set(digits)) > 1 and luhn.is_valid(digits):
            is_assigned = text[max(0, match.start() - 1) : match.start()] == "="
            is_issued = len(digits) >= 13 and not is_assigned and _ISSUERS.fullmatch(digits) is not None
            before = max(0, match.start() - CONTEXT_BEFORE)
            if _CARD_WORDS.search(text, before, match.start()) or (
                is_issued and not _OTHER_NUMBER_LABEL.search(text, before, match.start())
            ):
                yield Span(match.start(), match.end(), "a card number whose check digit is right")


def _find_ibans(text: str) -> Iterator[Span]:
    at = 0 if _IBAN_DIGITS.search(text) else len(text)
    while (match := _IBAN.search(text, at)) is not None:
        at = match.start() + 4
        for end in range(match.end(), match.start() + 14, -1):
            if (end == len(text) or not text[end].isalnum()) and _is_iban(text[match.start() : end]):
                yield Span(match.start(), end, "an IBAN whose check digits are right")
                at = end  # the rest of the match may begin the next one
                break


@lru_cache(maxsize=4096)
def _is_iban(number: str) -> bool:
    from stdnum import iban  # noqa: PLC0415 - few texts contain the form of an IBAN
    from stdnum.exceptions import ValidationError  # noqa: PLC0415

    try:
        iban.validate(number, check_country=False)  # its list of banks is incomplete
    except ValidationError:
        return False
    return True


def _find_ip_addresses(text: str) -> Iterator[Span]:
    for needs, pattern in ((_DOTTED, _IPV4), (_COLONS, _IPV6)):
        for match in iter_matches(pattern, text) if needs.search(text) else ():
            if _is_public(match[0]) and not _VERSION.search(text, max(0, match.start() - 24), match.start()):
                yield Span(match.start(), match.end(), "a public IP address")


def _is_public(source: str) -> bool:
    """Whether this is a public IP address.

    A shortened IPv6 address must be in 2000::/3 (RFC 4291), which `a::b` in source code is not; one of eight groups
    must have a long group, which hardware addresses do not.
    """
    try:
        address = ip_address(source.lower().removeprefix("::ffff:") if "." in source else source)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        whole = "::" not in source and _LONG_GROUP.search(source) is not None
        return (address.is_global or address in _EXAMPLE_NETWORK_V6) and (whole or int(address) >> 125 == 1)
    return (address.is_global and not address.is_multicast) or any(address in net for net in _EXAMPLE_NETWORKS)


CONTEXT_AFTER: Final = 24
"""Characters after a number: `12345 (isikukood)`."""


_MAYBE_IDENTITY: Final = re.compile(r"\d(?:[ .+-]?\d){5}|\d\d[A-Z]\d\d[A-Z]", re.ASCII)
"""Every format of `identity_formats.py` matches this, and most texts do not."""
_DOCUMENT_NAMES: Final = (
    r"(?P<what>driv(?:er|ing)['’]?s? licen[cs]e|licen[cs]e (?:number|no)|\bdl(?= ?(?:#|no|number))|führerschein|körkort"
    r"|permis de conduire|carn[eé] de conducir|patente di guida|rijbewijs|prawo jazdy"
    r"|(?P<passport>passport|identity card|reisepass|personalausweis|passeport|pasaporte|passaporto|passaporte|paspoort"
    r"|paszport|pasnummer|passnummer|паспорт\w{0,2}|护照|護照|パスポート|جواز (?:ال)?سفر|διαβατήριο))"
)
_DOCUMENT_NUMBER: Final = re.compile(
    _DOCUMENT_NAMES
    + r"(?:n?ummer)?(?: ?(?:number|num(?:ber)?|no|nr|nummer|núm|numéro|numero|número|n[°º]|№|#|id|号码?|番号|رقم)\.?)?"
    r"(?: is| ist|är|es| est| è|:| =)? {0,2}#?(?P<number>(?=[A-Z]{0,4}[ -]?\d)(?:\d{2} ?\d{2} \d{6}"
    r"|[A-Z0-9](?:[A-Z0-9]|-(?!-)){4,17}))(?!\w)",
    re.IGNORECASE,
)  # fmt: skip


_MAYBE_NEEDS_CONTEXT: Final = re.compile(
    r"\d(?:[ ./-]?\d){8}|[A-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]|[A-Z]{5}\d{4}[A-Z]|\d{7}[A-W]", re.ASCII
)
"""Every format that needs a context matches this. Few texts do, which saves the many searches."""
_DOCUMENT_WORDS: Final = (
    "licen", "dl #", "dl#", "dl n", "dln", "führersch", "körkort", "permis", "conducir", "patente", "rijbewijs",
    "prawo", "passp", "identity card", "reisepass", "personalausweis", "passep", "pasaporte", "passaport", "paspoort",
    "paszport",
    "pasnummer", "passn", "паспорт", "护照", "護照", "パスポート", "جواز", "διαβατήριο",
)  # fmt: skip
"""Every document name above contains one of these."""


def find_identities(text: str) -> Iterator[Span]:
    """Yields the identity numbers of a text."""
    if _MAYBE_IDENTITY.search(text):
        yield from _find_formats(text)
    low = text.lower() if _DIGIT.search(text) else ""
    for match in _DOCUMENT_NUMBER.finditer(text) if any(map(low.__contains__, _DOCUMENT_WORDS)) else ():
        kind = "LICENCE" if match["passport"] is None else "PASSPORT"
        if sum(char.isdigit() for char in match["number"]) < 3:
            continue
        yield Span(match.start("number"), match.end("number"), "the number of a personal document", kind)


def _find_formats(text: str) -> Iterator[Span]:
    from agent.policy.guardrails.identity_formats import (  # noqa: PLC0415 - see its docstring
        FORMATS_WITHOUT_CONTEXT,
        IDENTITY_FORMATS,
        is_valid,
    )

    for identity in IDENTITY_FORMATS if _MAYBE_NEEDS_CONTEXT.search(text) else FORMATS_WITHOUT_CONTEXT:
        if identity.context is not None and next(iter_matches(identity.context, text), None) is None:
            continue
        for match in iter_matches(identity.pattern, text):
            if identity.context is not None and not (
                has_words(identity.context, text, max(0, match.start() - CONTEXT_BEFORE), match.start())
                or has_words(identity.context, text, match.end(), match.end() + CONTEXT_AFTER)
            ):
                continue
            if is_valid(identity.validate, match[0]):
                yield Span(match.start(), match.end(), identity.description, identity.kind)


_PII_KINDS: Final = (
    PiiKind("EMAIL", find_emails, 0),
    PiiKind("IBAN", _find_ibans, 2),
    PiiKind("CARD", _find_cards, 12),
    PiiKind("ID", find_identities, 3),
    PiiKind("IP", _find_ip_addresses, 0),
    PiiKind("PHONE", find_phones, 6),
)
_MOST_DIGITS: Final = max(kind.min_digits for kind in _PII_KINDS)
