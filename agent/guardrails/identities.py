"""Numbers a state gives to its people: by form and check digit, commoner forms only next to a word that names them."""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from stdnum.be import nn
from stdnum.br import cpf
from stdnum.ca import sin
from stdnum.ch import ssn as ahv
from stdnum.de import idnr
from stdnum.dk import cpr
from stdnum.es import dni, nie
from stdnum.exceptions import ValidationError
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.in_ import aadhaar
from stdnum.it import codicefiscale
from stdnum.nl import bsn
from stdnum.no import fodselsnummer
from stdnum.pl import pesel
from stdnum.se import personnummer
from stdnum.us import ssn

from agent.guardrails.spans import Span

BEFORE: Final = 48
"""Characters before a number in which the word may stand."""


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
    Identity("SSN", _form(r"\d{3} ?\d{2} ?\d{4}"), ssn.validate, _words(r"\bssn\b|social security"),
             "a US social security number"),
    Identity("PERSONNUMMER", _form(r"(?:19|20)?\d{6}[-+]\d{4}"), personnummer.validate, None, "a Swedish personnummer"),
    Identity("PERSONNUMMER", _form(r"(?:19|20)?\d{10}"), personnummer.validate, _words(r"person|födelse|swedish"),
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
             _words(r"national insurance|\bnino?\b|insurance n"), "a British National Insurance number"),
)  # fmt: skip
_ANY: Final = re.compile(r"\d(?:[ .+-]?\d){5}|\d\d[A-Z]\d\d[A-Z]", re.ASCII)
"""What every form above holds; most texts hold none of it."""
_DIGIT: Final = re.compile(r"\d")
_DOCUMENT: Final = re.compile(
    r"(?P<what>driv(?:er|ing)['’]?s? licen[cs]e|licen[cs]e (?:number|no)|passport|identity card|führerschein|reisepass)"
    r"(?: ?(?:number|no\.?|nr\.?|nummer|#|id))?(?: is| ist"
    r"|:| =)? {0,2}#?(?P<number>(?=[A-Z-]{0,4}\d)[A-Z0-9][A-Z0-9-]{4,17})(?!\w)",
    re.IGNORECASE,
)  # fmt: skip


def identities(text: str) -> Iterator[Span]:
    """Identity numbers of a text."""
    for identity in IDENTITIES if _ANY.search(text) else ():
        for match in identity.form.finditer(text):
            if identity.words is not None and not identity.words.search(
                text, max(0, match.start() - BEFORE), match.start()
            ):
                continue
            if _valid(identity.validate, match[0]):
                yield Span(match.start(), match.end(), identity.says, identity.kind)
    for match in _DOCUMENT.finditer(text) if _DIGIT.search(text) else ():
        kind = "PASSPORT" if match["what"].lower() in {"passport", "reisepass", "identity card"} else "LICENCE"
        yield Span(match.start("number"), match.end("number"), "the number of a personal document", kind)


@lru_cache(maxsize=4096)
def _valid(validate: Callable[[str], str], number: str) -> bool:
    try:
        validate(number)
    except ValidationError:
        return False
    return True
