"""The exact checks on labelled claims. The figures are those that were measured; the meaning is not checked here.

No capable model was at hand for these tests: the check of the meaning is tested for its protocol, with a scripted
model. `make eval-answers` measures it with a configured one.
"""

import pytest

from gateway.packaged_files import PACKAGE_ROOT
from tests.bench.answers import EXACT_HEAD, format_exact, tabulate
from tests.support.claims import EXACT_KINDS, HALVES, ClaimOutcome, Half, check_claims, load_claims

FALSELY_REJECTED: dict[Half, int] = {"development": 4, "measured": 1}
CHANGED_VALUES_FOUND: dict[Half, int] = {"development": 18, "measured": 23}


async def check_half(half: Half) -> list[ClaimOutcome]:
    """The outcomes of one half of the set."""
    return await check_claims(*load_claims(half))


@pytest.mark.parametrize("half", HALVES)
async def test_whole_sentences_of_a_passage_are_released_and_nothing_else(half: Half) -> None:
    outcomes = await check_half(half)
    released = [one for one in outcomes if one.outcome == "released"]
    assert all(one.claim.is_supported for one in released), "a falsehood was released without a check of its meaning"
    assert all(one.outcome == "released" for one in outcomes if one.claim.kind == "verbatim")
    assert len(released) >= 10


@pytest.mark.parametrize("half", HALVES)
async def test_few_true_claims_are_rejected_and_most_changed_values_are(half: Half) -> None:
    outcomes = await check_half(half)
    rejected = [one for one in outcomes if one.outcome == "rejected"]
    false = [one for one in rejected if one.claim.is_supported]
    assert len(false) <= FALSELY_REJECTED[half], [f"{one.claim.text}: {one.problem}" for one in false]
    found = [one for one in rejected if one.claim.kind in EXACT_KINDS]
    assert len(found) >= CHANGED_VALUES_FOUND[half], "changed number words and unknown units stay open"


async def test_the_table_in_the_documents_is_the_one_that_is_printed() -> None:
    table = "\n".join(await tabulate(EXACT_HEAD, None, format_exact))
    assert table in (PACKAGE_ROOT / "docs" / "citations.md").read_text("utf-8")


async def test_claims_of_both_halves_are_in_three_languages() -> None:
    claims = [claim for half in HALVES for claim in load_claims(half)[1]]
    assert len(claims) >= 300
    assert {claim.language for claim in claims} == {"en", "sv", "de"}
    assert {claim.label for claim in claims} == {"supported", "contradicted", "not_said"}
