"""Numbers that only name something are no claims, unless the evidence numbers things of the same kind."""

import pytest

from agent.answers.figures import find_unexplained_figures


@pytest.mark.parametrize(
    "answer",
    [
        "Step 11: pay. Step 12: leave.",
        "**Schritt 11:** fertig.",
        "Étape 12 : fini.",
        "Steg 14 är klart.",
        "1.1 Rent is due\n1.2 Leave",
        "### 4.12 Notice",
        "See section 4.2, table 12 and page 14.",
        "Siehe Seiten 14 und 15.",
        "(10) notice, (11) leave",
        "| # | what |\n|---|---|\n" + "\n".join(f"| {row} | thing |" for row in range(1, 13)),
        "ISO 27001, Windows 11 and HTTP 404 on port 443",
        "It is on call 24/7 and among the top 10.",
        "I am 100 % sure.",
        "A year has 365 days or 52 weeks, a day 24 hours.",
        "Das Jahr hat 365 Tage.",
    ],
)
def test_a_label_is_not_marked(answer: str) -> None:
    assert find_unexplained_figures(answer, "notes: three") == []


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("The fault is in line 12.", "a = 1\n" * 20 + "b = 4000"),
        ("The process ended with exit code 137.", "INFO rollback exit=137"),
        ("HTTP 200 was returned for 964 requests.", '{"requests": 1000, "errors": 36, "p95_ms": 212}'),
        ("It serves HTTPS on port 443.", "The certificate is valid for 90 days."),
        ("The status is HTTP 404, not found.", "We have 100 items; error not found"),
        ("Use HTTPS on port 443.", "The server has 300 users."),
        ("Use HTTPS on port 443.", '{"users": 300}'),
        ("See page 45 for details.", "The handbook has 88 rules."),
        ("Python fails in line 15.", "see 23 tests"),
    ],
)
def test_a_label_that_the_result_gives_or_nothing_denies_is_not_marked(answer: str, evidence: str) -> None:
    assert find_unexplained_figures(answer, evidence) == []


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("Section 14 sets it.", "§ 9 rent, section 11 notice"),
        ("Das steht auf Seite 17.", '{"page": 12, "text": "Frist"}'),
        ("It needs Python 3.13.", "Python >= 3.11"),
        ("It is certified to ISO 14001.", "iso: 9001"),
        ("The warranty is 365 days.", "warranty: 2 years"),
        ("Von Mai bis August lieferte die Anlage 2.756,6 kWh.", "Anlage: 2.657,6 kWh"),
        ("1.5 GB are used", "2.5 GB"),
        ("The process ended with exit code 139.", "INFO rollback exit=137"),
        ("The server answered with HTTP status 503.", '{"response": 404, "url": "/x"}'),
        ("Der Dienst lauscht auf Port 9443.", '{"listen": 8443}'),
        ("The server answered with HTTP 503.", "HTTP 404 on /x, 200 otherwise"),
        ("Die Datei ist in Zeile 900 falsch.", "Zeile 12 ist leer"),
        ("The fault is error code 1712.", "E-1721: drive blocked"),
        ("Det står på sidan 87.", '{"title": "Notice", "p": 12}'),
        ("The parser failed at line 4120.", "error: parse failed at line 4210 of data.csv"),
        ("L'erreur est survenue à la ligne 33 137.", "ERREUR ligne 31 337 : encodage invalide"),
        ("| 14 | Anna |\n| 31 | Bo |", "notes: three"),
        ("(14) or (17)", "notes: three"),
    ],
)
def test_a_number_that_states_something_is_marked(answer: str, evidence: str) -> None:
    assert find_unexplained_figures(answer, evidence)
