"""Finds national identity numbers by format and check digit.

Formats that other numbers share count only next to a word that names them.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from stdnum.at import vnr
from stdnum.au import tfn
from stdnum.be import nn
from stdnum.bg import egn
from stdnum.br import cpf
from stdnum.ca import sin
from stdnum.ch import ssn as ahv
from stdnum.cl import rut
from stdnum.cn import ric
from stdnum.cz import rc
from stdnum.de import idnr
from stdnum.dk import cpr
from stdnum.ee import ik
from stdnum.es import dni, nie
from stdnum.exceptions import ValidationError
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.gr import amka
from stdnum.hr import oib
from stdnum.ie import pps
from stdnum.il import idnr as teudat
from stdnum.in_ import aadhaar, pan
from stdnum.is_ import kennitala
from stdnum.it import codicefiscale
from stdnum.kr import rrn
from stdnum.lt import asmens
from stdnum.mx import curp
from stdnum.nl import bsn
from stdnum.no import fodselsnummer
from stdnum.pl import pesel
from stdnum.pt import nif
from stdnum.ro import cnp
from stdnum.ru import inn
from stdnum.se import personnummer
from stdnum.tr import tckimlik
from stdnum.us import ssn
from stdnum.za import idnr as south_african

from agent.policy.guardrails.spans import Span

CONTEXT_BEFORE: Final = 48
"""Characters before a number in which the context must match."""
CONTEXT_AFTER: Final = 24
"""Characters after a number: `12345 (isikukood)`."""


class IdentityFormat(NamedTuple):
    """The format of a number. `context` is a pattern that must match near it; None: the format is enough."""

    kind: str
    pattern: re.Pattern[str]
    validate: Callable[[str], str]
    context: re.Pattern[str] | None
    description: str


def _make(
    kind: str, pattern: str, validate: Callable[[str], str], context: str | None, description: str
) -> IdentityFormat:
    compiled = re.compile(rf"(?<![\w.+/-])(?:{pattern})(?![\w])(?!-\d)")
    near = None if context is None else re.compile(context, re.IGNORECASE)
    return IdentityFormat(kind, compiled, validate, near, description)


_PERSONAL = r"person|personal|national|identi|\bid\b|\bssn\b|social|fødsel|födelse|henkilö"
IDENTITY_FORMATS: Final = (
    _make("SSN", r"\d{3}-\d{2}-\d{4}", ssn.validate, None, "a US social security number"),
    _make("SSN", r"\d{3}[ .]?\d{2}[ .]?\d{4}", ssn.validate, r"\bssn\b|social security",
             "a US social security number"),
    _make("PERSONNUMMER", r"(?:19|20)?\d{6}[-+]\d{4}", personnummer.validate, None, "a Swedish personnummer"),
    _make("PERSONNUMMER", r"(?:19|20)?\d{6} ?\d{4}", personnummer.validate, r"person|födelse|swedish",
             "a Swedish personnummer"),
    _make("ID", r"\d{6}[-+A]\d{3}[0-9A-Z]", hetu.validate, None, "a Finnish hetu"),
    _make("ID", r"[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]", codicefiscale.validate, None,
             "an Italian codice fiscale"),
    _make("ID", r"\d{8}[- ]?[A-HJ-NP-TV-Z]", dni.validate, None, "a Spanish DNI"),
    _make("ID", r"[XYZ]-?\d{7}-?[A-Z]", nie.validate, None, "a Spanish NIE"),
    _make("ID", r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}", ahv.validate, None, "a Swiss AHV number"),
    _make("ID", r"\d{3}\.\d{3}\.\d{3}-\d{2}", cpf.validate, None, "a Brazilian CPF"),
    _make("ID", r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", nn.validate, None, "a Belgian national number"),
    _make("ID", r"[12] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}", nir.validate, None, "a French NIR"),
    _make("ID", r"\d{6} ?\d{5}", fodselsnummer.validate, _PERSONAL + r"|norw", "a Norwegian number"),
    _make("ID", r"\d{6}-?\d{4}", cpr.validate, r"\bcpr\b|dan(?:ish|sk)", "a Danish CPR number"),
    _make("ID", r"\d{9}", bsn.validate, r"\bbsn\b|burgerservice|sofi", "a Dutch BSN"),
    _make("ID", r"\d{2} ?\d{3} ?\d{3} ?\d{3}", idnr.validate, r"steuer|tax id|\bidnr\b"
    r"|identifikation",
             "a German tax number"),
    _make("ID", r"\d{11}", pesel.validate, r"pesel", "a Polish PESEL"),
    _make("ID", r"\d{3}[ -]?\d{3}[ -]?\d{3}", sin.validate, r"\bsin\b|social insurance",
             "a Canadian SIN"),
    _make("ID", r"\d{4} ?\d{4} ?\d{4}", aadhaar.validate, r"aadhaar|aadhar"
    r"|uidai", "an Aadhaar number"),
    _make("ID", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]", str,
             r"national insurance|\bnino\b|\bni (?:number|no)|insurance n",
             "a British National Insurance number"),
    _make("ID", r"\d{17}[0-9Xx]", ric.validate, None, "a Chinese identity number"),
    _make("ID", r"[A-Z]{4}\d{6}[A-Z]{6}[A-Z0-9]\d", curp.validate, None, "a Mexican CURP"),
    _make("ID", r"\d{3}[ -]?\d{3}[ -]?\d{4}", nhs.validate, r"\bnhs\b|health service",
             "a British NHS number"),
    _make("ID", r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", cpf.validate, r"\bcpf\b", "a Brazilian CPF"),
    _make("ID", r"[1-6]\d{10}", ik.validate, r"isikukood|eston|personal (?:code|id)",
             "an Estonian number"),
    _make("ID", r"[1-6]\d{10}", asmens.validate, r"asmens|lithuan", "a Lithuanian number"),
    _make("ID", r"\d{11}", tckimlik.validate, r"kimlik|\btckn?\b|t\.c\.|turk",
             "a Turkish identity number"),
    _make("ID", r"\d{13}", south_african.validate, _PERSONAL + r"|south africa",
             "a South African number"),
    _make("ID", r"[A-Z]{5}\d{4}[A-Z]", pan.validate, r"\bpan\b|income tax|permanent account",
             "an Indian PAN"),
    _make("ID", r"\d{6}/\d{3,4}", rc.validate, None, "a Czech or Slovak rodné číslo"),
    _make("ID", r"\d{9,10}", rc.validate, r"rodn|\br\. ?č\.", "a Czech or Slovak rodné číslo"),
    _make("ID", r"\d{10}", egn.validate, r"\begn\b|егн", "a Bulgarian EGN"),
    _make("ID", r"\d{11}", oib.validate, r"\boib\b", "a Croatian OIB"),
    _make("ID", r"\d{11}", amka.validate, r"amka|αμκα", "a Greek AMKA"),
    _make("ID", r"\d{7}[A-W][A-IW]?", pps.validate, r"\bppsn?\b", "an Irish PPS number"),
    _make("ID", r"\d{9}", teudat.validate, r"teudat|israel|ת\.?ז|זהות", "an Israeli identity number"),
    _make("ID", r"\d{6}-?\d{4}", kennitala.validate, r"kennit|iceland", "an Icelandic kennitala"),
    _make("ID", r"\d{6}-[1-8]\d{6}", rrn.validate, None, "a Korean resident number"),
    _make("ID", r"\d{9}", nif.validate, r"\bnif\b|contribuinte", "a Portuguese NIF"),
    _make("ID", r"[1-9]\d{12}", cnp.validate, r"\bcnp\b|cod numeric", "a Romanian CNP"),
    _make("ID", r"\d{12}", inn.validate, r"\binn\b|инн", "a Russian INN"),
    _make("ID", r"\d{4} ?\d{6}", vnr.validate, r"sozialversicherung|svnr|sv-n", "an Austrian number"),
    _make("ID", r"\d{3} ?\d{3} ?\d{3}", tfn.validate, r"\btfn\b|tax file", "an Australian TFN"),
    _make("ID", r"\d{1,2}\.?\d{3}\.?\d{3}-[\dkK]", rut.validate, r"\brut\b|\brun\b|chile",
             "a Chilean RUT"),
)  # fmt: skip
_MAYBE_IDENTITY: Final = re.compile(r"\d(?:[ .+-]?\d){5}|\d\d[A-Z]\d\d[A-Z]", re.ASCII)
"""Every format above matches this, and most texts do not."""
_DIGIT: Final = re.compile(r"\d")
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


_FORMATS_WITHOUT_CONTEXT: Final = tuple(identity for identity in IDENTITY_FORMATS if identity.context is None)
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
    formats = (
        ()
        if not _MAYBE_IDENTITY.search(text)
        else IDENTITY_FORMATS
        if _MAYBE_NEEDS_CONTEXT.search(text)
        else _FORMATS_WITHOUT_CONTEXT
    )
    for identity in formats:
        for match in identity.pattern.finditer(text):
            if identity.context is not None and not (
                identity.context.search(text, max(0, match.start() - CONTEXT_BEFORE), match.start())
                or identity.context.search(text, match.end(), match.end() + CONTEXT_AFTER)
            ):
                continue
            if _is_valid(identity.validate, match[0]):
                yield Span(match.start(), match.end(), identity.description, identity.kind)
    low = text.lower() if _DIGIT.search(text) else ""
    for match in _DOCUMENT_NUMBER.finditer(text) if any(map(low.__contains__, _DOCUMENT_WORDS)) else ():
        kind = "LICENCE" if match["passport"] is None else "PASSPORT"
        if sum(char.isdigit() for char in match["number"]) < 3:
            continue
        yield Span(match.start("number"), match.end("number"), "the number of a personal document", kind)


@lru_cache(maxsize=4096)
def _is_valid(validate: Callable[[str], str], number: str) -> bool:
    try:
        validate(re.sub(r"[ .]", "", number))  # not every validator accepts the spaces and dots that the formats allow
    except ValidationError:
        return False
    return True
