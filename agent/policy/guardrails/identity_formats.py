"""The formats of national identity numbers.

Imported by the first text that may contain one: the validators are 124 modules and 1.5 MB.
"""

import re
from collections.abc import Callable
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
FORMATS_WITHOUT_CONTEXT: Final = tuple(identity for identity in IDENTITY_FORMATS if identity.context is None)


@lru_cache(maxsize=4096)
def is_valid(validate: Callable[[str], str], number: str) -> bool:
    """Whether a number of the right format passes its check digit and its rules."""
    try:
        validate(re.sub(r"[ .]", "", number))  # not every validator accepts the spaces and dots that the formats allow
    except ValidationError:
        return False
    return True
