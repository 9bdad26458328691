"""Labelled answers that name people and companies in four languages, with true names and with invented ones."""

import json
import random
from collections.abc import Iterator

from tests.support.figure_sets import FigureCase

_GIVEN = {
    "en": "James Olivia Robert Emily Thomas Sarah William Grace Daniel Hannah",
    "de": "Klaus Anna Jürgen Sabine Stefan Heike Matthias Katrin Wolfgang Ute",
    "sv": "Erik Kerstin Lars Åsa Johan Ingrid Göran Malin Björn Elsa",
    "fr": "Pierre Sophie Étienne Claire Jacques Hélène Luc Camille Thierry Élise",
}
_FAMILY = {
    "en": "Whitmore Hartley Ashdown Pemberton Kingsley Thornton Bradbury Locke Fairfax Holloway",
    "de": "Bergmann Lindner Hoffstetter Kranz Vogelsang Reuter Dietrich Pohlmann Sauer Weidner",
    "sv": "Lindqvist Sandström Hedlund Nyberg Ekdahl Forsgren Björklund Sjögren Wallin Åkesson",
    "fr": "Delacroix Moreau Fontaine Lambert Rousselle Girard Marchand Beaulieu Tessier Vasseur",
}
_COMPANIES = {
    "en": "Redwood Analytics Ltd|Harbour Freight Inc|Silver Birch Foundation|Oak Valley Holding|North Sea Bank",
    "de": "Sonnental Technik GmbH|Rheinwerk Logistik AG|Alpenblick Verlag KG|Havelland Energie GmbH|Ostsee Reederei AG",
    "sv": "Norrsken Teknik AB|Mälaren Transport AB|Silverån Energi AB|Kustlinjen Holding|Granit Bygg AB",
    "fr": "Rivage Conseil SARL|Hautes Plaines SA|Atelier Lumière SAS|Groupe Montclair SA|Banque Verte SA",
}
_SENTENCES = {
    "en": (
        "{n} signed the contract on Monday.",
        "According to {n}, the delivery will be late.",
        "The project is led by {n}, who reports to the board.",
        "Next Monday, {n} will send the final report to the European customers.",
        "- **Contact:** {n}\n- **Status:** open",
        "However, I found that {n} has not answered yet. Please ask again in March.",
        "| Role | Person |\n|---|---|\n| Lead | {n} |",
    ),
    "de": (
        "{n} hat den Vertrag am Montag unterschrieben.",
        "Laut {n} kommt die Lieferung später.",
        "Das Projekt wird von {n} geleitet, und die Monatlichen Kosten sind bekannt.",
        "Neue Verträge prüft {n} Anfang März im Auftrag der Geschäftsführung.",
        "- **Ansprechpartner:** {n}\n- **Offene Punkte:** keine",
        "Gemäß Vertrag ist {n} zuständig. Weitere Informationen stehen im Anhang.",
        "| Rolle | Person |\n|---|---|\n| Leitung | {n} |",
    ),
    "sv": (
        "{n} skrev under avtalet i måndags.",
        "Enligt {n} blir leveransen sen.",
        "Projektet leds av {n}, som rapporterar till styrelsen.",
        "På måndag skickar {n} den sista rapporten till kunderna.",
        "- **Kontakt:** {n}\n- **Nästa steg:** inga",
        "Däremot har {n} inte svarat än. Fråga gärna igen i mars.",
        "| Roll | Person |\n|---|---|\n| Ledare | {n} |",
    ),
    "fr": (
        "{n} a signé le contrat lundi.",
        "Selon {n}, la livraison sera en retard.",
        "Le projet est dirigé par {n}, qui rend compte au conseil.",
        "Lundi prochain, {n} enverra le dernier rapport aux clients.",
        "- **Contact :** {n}\n- **Prochaine étape :** aucune",
        "Cependant, {n} n'a pas encore répondu. Merci de redemander en mars.",
        "| Rôle | Personne |\n|---|---|\n| Responsable | {n} |",
    ),
}
_TITLES = {
    "en": ("Dr. {}", "Mrs {}", "Professor {}"),
    "de": ("Frau {}", "Herr {}", "Dr. {}"),
    "sv": ("fru {}", "professor {}", "Dr {}"),
    "fr": ("Mme {}", "M. {}", "le docteur {}"),
}


def iter_name_cases(language: str, seed: int, count: int) -> Iterator[tuple[FigureCase, FigureCase]]:
    """Yields pairs of a true answer and the same answer with an invented name."""
    pick = random.Random(f"{language} {seed}")
    for number in range(count):
        sentence = _SENTENCES[language][number % len(_SENTENCES[language])]
        known, others = _make_names(language, pick)
        evidence = _write_evidence(known, pick)
        kind = ("person", "company", "title", "mixed")[number // len(_SENTENCES[language]) % 4]
        true, false = _choose(kind, language, known, others, pick)
        yield (
            FigureCase(language, kind, evidence, sentence.format(n=true)),
            FigureCase(language, kind, evidence, sentence.format(n=false), false),
        )


def _make_names(language: str, pick: random.Random) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    given, family = _GIVEN[language].split(), _FAMILY[language].split()
    companies = _COMPANIES[language].split("|")
    for words in (given, family, companies):
        pick.shuffle(words)
    known = {"given": given[:4], "family": family[:4], "company": companies[:2]}
    return known, {"given": given[4:], "family": family[4:], "company": companies[2:]}


def _write_evidence(known: dict[str, list[str]], pick: random.Random) -> str:
    rows = [
        {"first_name": one, "last_name": other, "employer": pick.choice(known["company"])}
        for one, other in zip(known["given"], known["family"], strict=True)
    ]
    rows[0]["employer"], rows[1]["employer"] = known["company"]
    form = pick.randrange(3)
    if form == 0:
        return json.dumps(rows, ensure_ascii=False)
    if form == 1:
        return "\n".join(f"{row['last_name']}, {row['first_name']}; {row['employer']}" for row in rows)
    return "\n".join(f"{row['first_name']} {row['last_name']} works for {row['employer']}." for row in rows)


def _choose(
    kind: str, language: str, known: dict[str, list[str]], others: dict[str, list[str]], pick: random.Random
) -> tuple[str, str]:
    place = pick.randrange(4)
    true = f"{known['given'][place]} {known['family'][place]}"
    if kind == "company":
        return known["company"][0], others["company"][0]
    if kind == "title":
        title = pick.choice(_TITLES[language])
        return title.format(known["family"][place]), title.format(others["family"][0])
    if kind == "mixed":  # a given name of one person, a family name of nobody
        return true, f"{known['given'][place]} {others['family'][1]}"
    return true, f"{others['given'][0]} {others['family'][2]}"
