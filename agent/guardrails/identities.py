"""Numbers a state gives to its people: by form and check digit, commoner forms only next to a word that names them."""

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

from agent.guardrails.spans import Span

BEFORE: Final = 48
"""Characters before a number in which the word may stand."""
AFTER: Final = 24
"""Characters behind it: `12345 (isikukood)`."""


class Identity(NamedTuple):
    """How one country's number looks. `words`: a pattern that must stand before it; None: the form is enough."""

    kind: str
    form: re.Pattern[str]
    validate: Callable[[str], str]
    words: re.Pattern[str] | None
    says: str


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.+/-])(?:{pattern})(?![\w])(?!-\d)")


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PERSONAL = r"person|personal|national|identi|\bid\b|\bssn\b|social|fødsel|födelse|henkilö"
IDENTITIES: Final = (
    Identity("SSN", _form(r"\d{3}-\d{2}-\d{4}"), ssn.validate, None, "a US social security number"),
    Identity("SSN", _form(r"\d{3}[ .]?\d{2}[ .]?\d{4}"), ssn.validate, _words(r"\bssn\b|social security"),
             "a US social security number"),
    Identity("PERSONNUMMER", _form(r"(?:19|20)?\d{6}[-+]\d{4}"), personnummer.validate, None, "a Swedish personnummer"),
    Identity("PERSONNUMMER", _form(r"(?:19|20)?\d{6} ?\d{4}"), personnummer.validate, _words(r"person|födelse|swedish"),
             "a Swedish personnummer"),
    Identity("ID", _form(r"\d{6}[-+A]\d{3}[0-9A-Z]"), hetu.validate, None, "a Finnish hetu"),
    Identity("ID", _form(r"[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]"), codicefiscale.validate, None,
             "an Italian codice fiscale"),
    Identity("ID", _form(r"\d{8}[- ]?[A-HJ-NP-TV-Z]"), dni.validate, None, "a Spanish DNI"),
    Identity("ID", _form(r"[XYZ]-?\d{7}-?[A-Z]"), nie.validate, None, "a Spanish NIE"),
    Identity("ID", _form(r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}"), ahv.validate, None, "a Swiss AHV number"),
    Identity("ID", _form(r"\d{3}\.\d{3}\.\d{3}-\d{2}"), cpf.validate, None, "a Brazilian CPF"),
    Identity("ID", _form(r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}"), nn.validate, None, "a Belgian national number"),
    Identity("ID", _form(r"[12] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}"), nir.validate, None, "a French NIR"),
    Identity("ID", _form(r"\d{6} ?\d{5}"), fodselsnummer.validate, _words(_PERSONAL + r"|norw"), "a Norwegian number"),
    Identity("ID", _form(r"\d{6}-?\d{4}"), cpr.validate, _words(r"\bcpr\b|dan(?:ish|sk)"), "a Danish CPR number"),
    Identity("ID", _form(r"\d{9}"), bsn.validate, _words(r"\bbsn\b|burgerservice|sofi"), "a Dutch BSN"),
    Identity("ID", _form(r"\d{2} ?\d{3} ?\d{3} ?\d{3}"), idnr.validate, _words(r"steuer|tax id|\bidnr\b"
    r"|identifikation"),
             "a German tax number"),
    Identity("ID", _form(r"\d{11}"), pesel.validate, _words(r"pesel"), "a Polish PESEL"),
    Identity("ID", _form(r"\d{3}[ -]?\d{3}[ -]?\d{3}"), sin.validate, _words(r"\bsin\b|social insurance"),
             "a Canadian SIN"),
    Identity("ID", _form(r"\d{4} ?\d{4} ?\d{4}"), aadhaar.validate, _words(r"aadhaar|aadhar"
    r"|uidai"), "an Aadhaar number"),
    Identity("ID", _form(r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]"), str,
             _words(r"national insurance|\bnino\b|\bni (?:number|no)|insurance n"),
             "a British National Insurance number"),
    Identity("ID", _form(r"\d{17}[0-9Xx]"), ric.validate, None, "a Chinese identity number"),
    Identity("ID", _form(r"[A-Z]{4}\d{6}[A-Z]{6}[A-Z0-9]\d"), curp.validate, None, "a Mexican CURP"),
    Identity("ID", _form(r"\d{3}[ -]?\d{3}[ -]?\d{4}"), nhs.validate, _words(r"\bnhs\b|health service"),
             "a British NHS number"),
    Identity("ID", _form(r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}"), cpf.validate, _words(r"\bcpf\b"), "a Brazilian CPF"),
    Identity("ID", _form(r"[1-6]\d{10}"), ik.validate, _words(r"isikukood|eston|personal (?:code|id)"),
             "an Estonian number"),
    Identity("ID", _form(r"[1-6]\d{10}"), asmens.validate, _words(r"asmens|lithuan"), "a Lithuanian number"),
    Identity("ID", _form(r"\d{11}"), tckimlik.validate, _words(r"kimlik|\btckn?\b|t\.c\.|turk"),
             "a Turkish identity number"),
    Identity("ID", _form(r"\d{13}"), south_african.validate, _words(_PERSONAL + r"|south africa"),
             "a South African number"),
    Identity("ID", _form(r"[A-Z]{5}\d{4}[A-Z]"), pan.validate, _words(r"\bpan\b|income tax|permanent account"),
             "an Indian PAN"),
    Identity("ID", _form(r"\d{6}/\d{3,4}"), rc.validate, None, "a Czech or Slovak rodné číslo"),
    Identity("ID", _form(r"\d{9,10}"), rc.validate, _words(r"rodn|\br\. ?č\."), "a Czech or Slovak rodné číslo"),
    Identity("ID", _form(r"\d{10}"), egn.validate, _words(r"\begn\b|егн"), "a Bulgarian EGN"),
    Identity("ID", _form(r"\d{11}"), oib.validate, _words(r"\boib\b"), "a Croatian OIB"),
    Identity("ID", _form(r"\d{11}"), amka.validate, _words(r"amka|αμκα"), "a Greek AMKA"),
    Identity("ID", _form(r"\d{7}[A-W][A-IW]?"), pps.validate, _words(r"\bppsn?\b"), "an Irish PPS number"),
    Identity("ID", _form(r"\d{9}"), teudat.validate, _words(r"teudat|israel|ת\.?ז|זהות"), "an Israeli identity number"),
    Identity("ID", _form(r"\d{6}-?\d{4}"), kennitala.validate, _words(r"kennit|iceland"), "an Icelandic kennitala"),
    Identity("ID", _form(r"\d{6}-[1-8]\d{6}"), rrn.validate, None, "a Korean resident number"),
    Identity("ID", _form(r"\d{9}"), nif.validate, _words(r"\bnif\b|contribuinte"), "a Portuguese NIF"),
    Identity("ID", _form(r"[1-9]\d{12}"), cnp.validate, _words(r"\bcnp\b|cod numeric"), "a Romanian CNP"),
    Identity("ID", _form(r"\d{12}"), inn.validate, _words(r"\binn\b|инн"), "a Russian INN"),
    Identity("ID", _form(r"\d{4} ?\d{6}"), vnr.validate, _words(r"sozialversicherung|svnr|sv-n"), "an Austrian number"),
    Identity("ID", _form(r"\d{3} ?\d{3} ?\d{3}"), tfn.validate, _words(r"\btfn\b|tax file"), "an Australian TFN"),
    Identity("ID", _form(r"\d{1,2}\.?\d{3}\.?\d{3}-[\dkK]"), rut.validate, _words(r"\brut\b|\brun\b|chile"),
             "a Chilean RUT"),
)  # fmt: skip
_ANY: Final = re.compile(r"\d(?:[ .+-]?\d){5}|\d\d[A-Z]\d\d[A-Z]", re.ASCII)
"""What every form above holds; most texts hold none of it."""
_DIGIT: Final = re.compile(r"\d")
_DOCUMENT: Final = re.compile(
    r"(?P<what>driv(?:er|ing)['’]?s? licen[cs]e|licen[cs]e (?:number|no)|\bdl(?= ?(?:#|no|number))|führerschein|körkort"
    r"|permis de conduire|carn[eé] de conducir|patente di guida|rijbewijs|prawo jazdy"
    r"|(?P<passport>passport|identity card|reisepass|personalausweis|passeport|pasaporte|passaporto|passaporte|paspoort"
    r"|paszport|pasnummer|passnummer|паспорт\w{0,2}|护照|護照|パスポート|جواز (?:ال)?سفر|διαβατήριο))"
    r"(?:n?ummer)?(?: ?(?:number|num(?:ber)?|no|nr|nummer|núm|numéro|numero|número|n[°º]|№|#|id|号码?|番号|رقم)\.?)?"
    r"(?: is| ist|är|es| est| è|:| =)? {0,2}#?(?P<number>(?=[A-Z]{0,4}[ -]?\d)(?:\d{2} ?\d{2} \d{6}"
    r"|[A-Z0-9](?:[A-Z0-9]|-(?!-)){4,17}))(?!\w)",
    re.IGNORECASE,
)  # fmt: skip


_ALONE: Final = tuple(identity for identity in IDENTITIES if identity.words is None)
_LONG: Final = re.compile(
    r"\d(?:[ ./-]?\d){8}|[A-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]|[A-Z]{5}\d{4}[A-Z]|\d{7}[A-W]", re.ASCII
)
"""What every form that needs a word holds; few texts hold it, and there are many such forms."""
_PAPERS: Final = (
    "licen", "dl #", "dl#", "dl n", "führersch", "körkort", "permis", "conducir", "patente", "rijbewijs", "prawo",
    "passp", "identity card", "reisepass", "personalausweis", "passep", "pasaporte", "passaport", "paspoort",
    "paszport",
    "pasnummer", "passn", "паспорт", "护照", "護照", "パスポート", "جواز", "διαβατήριο",
)  # fmt: skip
"""One of these is in every name of a document above."""


def identities(text: str) -> Iterator[Span]:
    """Identity numbers of a text."""
    asked = () if not _ANY.search(text) else IDENTITIES if _LONG.search(text) else _ALONE
    for identity in asked:
        for match in identity.form.finditer(text):
            if identity.words is not None and not (
                identity.words.search(text, max(0, match.start() - BEFORE), match.start())
                or identity.words.search(text, match.end(), match.end() + AFTER)
            ):
                continue
            if _valid(identity.validate, match[0]):
                yield Span(match.start(), match.end(), identity.says, identity.kind)
    low = text.lower() if _DIGIT.search(text) else ""
    for match in _DOCUMENT.finditer(text) if any(word in low for word in _PAPERS) else ():
        kind = "LICENCE" if match["passport"] is None else "PASSPORT"
        if sum(char.isdigit() for char in match["number"]) < 3:
            continue
        yield Span(match.start("number"), match.end("number"), "the number of a personal document", kind)


@lru_cache(maxsize=4096)
def _valid(validate: Callable[[str], str], number: str) -> bool:
    try:
        validate(re.sub(r"[ .]", "", number))  # not every validator takes the blanks and dots that the forms allow
    except ValidationError:
        return False
    return True
