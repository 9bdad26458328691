"""What the classifier is trained on besides files: sentences and forms come out the same every time, on both sides."""

from tests.bench.guardrails.forms import generate_forms
from tests.bench.guardrails.grammar import (
    ORDERS,
    generate_orders,
    generate_other_texts,
    generate_pages,
    generate_prompts,
    load_frames,
)


def test_the_same_comes_out_again() -> None:
    assert generate_orders() == generate_orders()
    assert generate_other_texts() == generate_other_texts()
    assert generate_forms() == generate_forms()
    assert generate_pages() == generate_pages()


def test_no_sentence_is_on_both_sides() -> None:
    assert {said.text for said in generate_orders()} & {said.text for said in generate_other_texts()} == set()
    attacks, asked = ({said.text for said in generate_prompts() if said.label == label} for label in (1, 0))
    assert attacks & asked == set()


def test_a_family_can_be_left_out() -> None:
    left = generate_orders("modal act")
    assert {said.family for said in left} == set(ORDERS) - {"modal act"}


def test_every_language_has_both_sides() -> None:
    assert len(load_frames()) == 13
    for language, said in load_frames().items():
        assert all(said[role] for role in ("address", "act", "human", "human_act", "about", "direct", "chat_ok")), (
            language
        )


def test_nothing_stays_to_be_filled_in() -> None:
    made = [*generate_orders(), *generate_other_texts()]
    assert not [said.text for said in made if "{" in said.text or "}" in said.text]
