"""How many invented names are found, and how many true ones are marked, on labelled answers in four languages."""

import pytest

from agent.answers.names import find_unexplained_names
from tests.support.name_sets import iter_name_cases

CASES = 112
EVIDENCE = (
    "Anna Lindqvist and Petri Virtanen of Nordwind Logistik GmbH met in the New York office of the European Union."
)


@pytest.mark.parametrize("language", ["en", "de", "sv", "fr"])
def test_invented_names_are_found_and_true_ones_are_not_marked(language: str) -> None:
    pairs = list(iter_name_cases(language, 5, CASES))
    missed = [false.answer for _, false in pairs if not _is_found(false.invented, false.answer, false.evidence)]
    marked = [true.answer for true, _ in pairs if find_unexplained_names(true.answer, true.evidence)]
    print(
        f"{language}: of {CASES} found {1 - len(missed) / CASES:.3f}, marked {len(marked) / CASES:.3f} of the true ones"
    )
    assert len(missed) <= 0.03 * CASES, missed
    assert len(marked) < 0.02 * CASES, marked


def _is_found(invented: str, answer: str, evidence: str) -> bool:
    family = invented.rpartition(" ")[2]
    return any(family in name or name in invented for name in find_unexplained_names(answer, evidence))


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("Meanwhile, Rolf Karlsson agreed.", ["Rolf Karlsson"]),
        ("It is by Ludwig van Beethoven.", ["Ludwig van Beethoven"]),
        ("Frau Schmidt hat zugesagt.", ["Schmidt"]),
        ("They met Anna Virtanen there.", ["Anna Virtanen"]),
        ("Anna Lindqvist's office in New York", []),
        ("**Next Steps:** call Lindqvist, Anna.\n\n## Key Findings And Risks", []),
        ("Die Neuen Verträge und Laufenden Kosten sind Thema im März.", []),
        ("The EU (European Union) met on Monday in May.", []),
        ("`Foo Bar` and https://example.org/Foo_Bar [1]", []),
    ],
)
def test_only_names_that_are_nowhere_are_reported(text: str, invented: list[str]) -> None:
    assert find_unexplained_names(text, EVIDENCE) == invented


@pytest.mark.parametrize("name", ["Ian Smith", "Tom Olsen", "Anna Taylor", "Ida Nolte", "Erik Nystr\u00f6m"])
def test_initials_explain_no_person(name: str) -> None:
    evidence = "She is in the office on Monday, to be reached at noon. IN ET; ID EN. Och en till."
    assert find_unexplained_names(f"The project is run by {name}.", evidence) == [name]


def test_an_abbreviation_of_the_evidence_may_be_written_out() -> None:
    assert find_unexplained_names("The World Health Organization agrees.", "The WHO agrees.") == []
    assert find_unexplained_names("The World Health Organization agrees.", "who agrees?")


@pytest.mark.parametrize(
    ("text", "evidence", "marked"),
    [
        ("The United Nations decides.", "UN decides", []),
        ("They ask the United Nations.", "The UN is asked, and it decides.", []),
        ("They met at Usine Neuve.", "Il y a UN train pour la ville et LES autres sont dans la gare.", ["Usine Neuve"]),
    ],
)
def test_a_stop_word_of_another_language_may_be_an_abbreviation(text: str, evidence: str, marked: list[str]) -> None:
    assert find_unexplained_names(text, evidence) == marked


@pytest.mark.parametrize(
    ("evidence", "true", "invented"),
    [
        ('[{"name": "Dr. Cem Aydin"}]', "Die Statik macht Dr. Cem Aydin.", "Die Statik macht Dr. Cem Arslan."),
        ("Pr\u00fcfung: Herr Torge Petersen", "Es ist Herr Torge Petersen.", "Es ist Herr Torge Ahrens."),
        ("Frau Kranz hilft Ihnen.", "Das macht Frau Kranz Freitag.", "Das macht Frau Kunz Freitag."),
    ],
)
def test_the_family_name_behind_a_title_has_to_be_known(evidence: str, true: str, invented: str) -> None:
    assert find_unexplained_names(true, evidence) == []
    assert find_unexplained_names(invented, evidence)


@pytest.mark.parametrize(
    "text",
    [
        "Bernd Mueller called.",
        "Der Bernd Müller ruft an.",
        "Maria Jose Garcia called Sven Erik Akesson.",
        "It applies in the United States.",
        "Use Microsoft Word and Google Docs.",
        "See Section Four and Appendix Two.",
        "The German Civil Code says so.",
        "Best Regards, Your Assistant",
        "Med Vänliga Hälsningar, Assistenten",
        "Next Steps\n\nCall them.",
        "Contact Customer Support for help.",
        "Leiter der Abteilung Einkauf",
        "Zuständig ist Abteilung Einkauf.",
    ],
)
def test_a_name_in_another_spelling_or_of_common_words_is_not_marked(text: str) -> None:
    assert find_unexplained_names(text, "Bernd Müller, María José García, Sven-Erik Åkesson") == []


@pytest.mark.parametrize(
    "text",
    [
        "Contact: Lindberg, Anna",
        "Contact Xiaoming Wang.",
        "Zuständig ist Xiaoming Wang.",
        "Zuständig: Priya Raghunathan",
        "Contactez Xiaoming Wang.",
        "Ansvarig är Xiaoming Wang.",
        "Bernd Moeller called.",
    ],
)
def test_a_person_behind_a_role_has_to_be_known(text: str) -> None:
    assert find_unexplained_names(text, "Bernd Müller, María José García, Sven-Erik Åkesson")
