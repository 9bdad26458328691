"""`extract_deadlines` and `extract_entities` on German, Swedish and French texts."""

from datetime import UTC, datetime

import pytest

from gateway.features.incident.tools.deadlines import extract_deadlines
from gateway.features.incident.tools.entities import extract_entities

WEDNESDAY = datetime(2026, 11, 4, 10, 0, tzinfo=UTC)


@pytest.mark.row("S004-20")
@pytest.mark.parametrize(
    ("text", "words", "due"),
    [
        ("Der Bericht ist bis Freitag fällig.", "bis Freitag", "2026-11-06 23:59"),
        ("Der Bericht ist am Freitag fällig.", "Freitag fällig", "2026-11-06 23:59"),
        ("Bitte bis morgen 17 Uhr antworten.", "bis morgen 17 Uhr", "2026-11-05 17:00"),
        ("Binnen 48 Stunden muss der Dienst laufen.", "Binnen 48 Stunden", "2026-11-06 10:00"),
        ("Bitte innerhalb von zwei Werktagen melden.", "innerhalb von zwei Werktagen", "2026-11-06 10:00"),
        ("Die Frist endet am 15. März 2027.", "Frist endet am 15. März 2027", "2027-03-15 23:59"),
        ("Abgabe bis Dienstag, den 1. Dezember", "bis Dienstag, den 1. Dezember", "2026-12-01 23:59"),
        ("Bis Ende Mai brauchen wir die Zahlen.", "Bis Ende Mai", "2027-05-31 23:59"),
        ("Der Fehler trat um 14:30 Uhr auf und muss bis 16:00 behoben sein.", "bis 16:00", "2026-11-04 16:00"),
        ("bis zum 1.2.", "bis zum 1.2", "2027-02-01 23:59"),
        ("Rapporten ska vara klar senast fredag.", "senast fredag", "2026-11-06 23:59"),
        ("senast i morgon kl. 15", "senast i morgon kl. 15", "2026-11-05 15:00"),
        ("Merci de répondre avant le 3 mars à 18h30.", "avant le 3 mars à 18h30", "2027-03-03 18:30"),
        ("d'ici la fin du mois", "d'ici la fin du mois", "2026-11-30 23:59"),
        ("Livrez vendredi à 17h au plus tard.", "vendredi à 17h au plus tard", "2026-11-06 17:00"),
        ("Le correctif arrive d'ici trois semaines.", "d'ici trois semaines", "2026-11-25 10:00"),
        ("Bitte bis morgen Mittag erledigen.", "bis morgen Mittag", "2026-11-05 12:00"),
        ("Call by Fri 5pm.", "by Fri 5pm", "2026-11-06 17:00"),
        ("Finish it by tomorrow noon.", "by tomorrow noon", "2026-11-05 12:00"),
        ("Sista dag för anmälan är 2026-12-01.", "2026-12-01", "2026-12-01 23:59"),
    ],
)
def test_deadlines_of_other_languages(text: str, words: str, due: str | None) -> None:
    (found,) = extract_deadlines(text, WEDNESDAY)
    assert (found.text, f"{found.due:%Y-%m-%d %H:%M}" if found.due else None) == (words, due)


@pytest.mark.parametrize(
    "text",
    [
        "Der Ausfall begann am 3. Januar um 08:15 Uhr.", "Am Montag ist der Dienst ausgefallen.",
        "Vor drei Tagen war der Server weg.", "Seit gestern sind sie langsam.", "In 5 Räumen fiel das Licht aus.",
        "Das Update dauert in der Regel 2 Stunden.", "Am 2026-11-01 war der Server weg.",
        "Avbrottet började den 3 mars klockan 02.10.", "Due to the storm, on 2 November we closed early.",
        "Die Zahlen sanken um 2.4 Punkte.", "The patch reduced latency by 2.4 on average.", "Seite 3 bis 5 fehlen.",
        "Von Montag bis Mittwoch war ich krank.", "Geöffnet ist 9:00 bis 16:00.",
        "Version 3.11 must be installed.", "La chaise coûte 19,99 euros.", "Il y a 12 places dans la salle 3.",
    ],
)  # fmt: skip
def test_a_day_alone_is_no_deadline_there(text: str) -> None:
    assert extract_deadlines(text, WEDNESDAY) == []


@pytest.mark.row("S004-17")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Der Drucker im Büro meldet einen Fehler, und die Rechnung von Anna Berg fehlt.", ["Anna Berg"]),
        ("Bitte sagt Herrn Kranz, dass die Lieferung der Muster GmbH den Zoll hat.", ["Kranz", "Muster GmbH"]),
        ("Am Montag hat die Abteilung Einkauf den Server mit Jürgen Klein geprüft.", ["Jürgen Klein"]),
        ("We asked Karl Lind about the Billing Portal, and it works.", ["Karl Lind", "Billing Portal"]),
    ],
)
def test_german_nouns_are_no_names(text: str, names: list[str]) -> None:
    entities = [one for one in extract_entities(text) if one.type == "name"]
    assert [one.text for one in entities] == names
    assert [text[one.start :].startswith(one.text) for one in entities] == [True] * len(names)
