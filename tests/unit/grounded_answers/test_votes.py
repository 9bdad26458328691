"""Who voted how: for, against, not at all, or was not there. One is not answered by another."""

import pytest

from agent.grounded_answers.stances import asked_stance, takes
from tests.unit.grounded_answers.passages import answered, passage

MINUTES = (
    passage(
        "## Item 1: Roof of the school\n\nThe council discussed the roof. In favour: Adler, Brandt, Costa. "
        "Against: Dietrich. Abstained: Eriksen.",
        1,
        heading_path=["Council, 4 May 2026", "Item 1: Roof of the school"],
    ),
    passage(
        "## Item 2: Parking fees\n\nThe motion to raise the parking fees was lost. Adler and Eriksen voted for it, "
        "Brandt and Costa opposed it; Dietrich abstained from voting.",
        2,
        heading_path=["Council, 4 May 2026", "Item 2: Parking fees"],
    ),
    passage(
        "Present: Adler, Brandt, Costa, Dietrich, Eriksen. Apologies: Fontaine.", 3, heading_path=["Council, 4 May"]
    ),
)
PROTOKOLL = (
    passage(
        "## Punkt 3: Lekplatsen\n\nNämnden beslutade att bygga lekplatsen. För: Berg, Dahl. Mot: Ek. "
        "Ek reserverade sig. Frisk avstod.",
        1,
        heading_path=["Protokoll", "Punkt 3: Lekplatsen"],
    ),
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who abstained from the vote on the roof?", "Abstained: Eriksen. [1]"),
        ("Who voted against the roof of the school?", "Against: Dietrich. [1]"),
        ("Who voted for the roof of the school?", "In favour: Adler, Brandt, Costa. [1]"),
        ("Who was absent from the council?", "Apologies: Fontaine. [1]"),
        ("Who abstained in item 2?", "Dietrich abstained from voting"),
    ],
)
def test_who_voted_how_is_answered_by_those_who_did(question: str, said: str) -> None:
    output = answered(question, *MINUTES)
    assert said in output.content
    assert "don't" not in output.content


def test_a_stance_nobody_took_is_answered_by_no_other() -> None:
    minutes = passage(
        "## Item 4: Budget\n\nThe budget was adopted. In favour: Adler, Brandt.", heading_path=["Item 4: Budget"]
    )
    for question in ("Who abstained from the vote on the budget?", "Who voted against the budget?"):
        output = answered(question, minutes)
        assert not output.citations or output.content.startswith("The documents don't")


def test_votes_are_found_in_other_languages() -> None:
    assert answered("Vem röstade mot lekplatsen?", *PROTOKOLL).content == "Mot: Ek. [1]"
    assert answered("Vem avstod om lekplatsen?", *PROTOKOLL).content == "Frisk avstod. [1]"


@pytest.mark.parametrize(
    ("question", "stance"),
    [
        ("Who abstained?", "abstained"),
        ("Who voted no on item 3?", "against"),
        ("Which members opposed the move?", "against"),
        ("How many abstentions were there?", "abstained"),
        ("Wer stimmte dagegen?", "against"),
        ("Wer enthielt sich der Stimme?", "abstained"),
        ("Who speaks out against favouritism?", None),
        ("Is the vaccine effective against measles?", None),
        ("What speaks against voting by mail?", None),
    ],
)
def test_a_stance_is_asked_of_voters_alone(question: str, stance: str | None) -> None:
    assert asked_stance(question) == stance


def test_a_stance_is_told_from_others() -> None:
    assert takes("abstained", "Abstentions: none.")
    assert takes("against", "Two members were opposed.")
    assert not takes("for", "The fee for members is due.")
    assert not takes("against", "In favour: all.")
