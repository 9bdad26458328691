"""The exact checks on labelled claims. The figures are those that were measured; the meaning is not checked here.

No capable model was at hand for these tests: the check of the meaning is tested for its protocol, with a scripted
model. `make eval-answers` measures it with a configured one.
"""

import pytest

from tests.support.claims import EXACT_KINDS, HALVES, ClaimOutcome, Half, check_claims, load_claims


@pytest.fixture(params=HALVES)
async def outcomes(request: pytest.FixtureRequest) -> list[ClaimOutcome]:
    """The outcomes of one half of the set."""
    half: Half = request.param
    return await check_claims(*load_claims(half))


async def test_whole_sentences_of_a_passage_are_released_and_nothing_else(outcomes: list[ClaimOutcome]) -> None:
    released = [one for one in outcomes if one.outcome == "released"]
    assert all(one.claim.is_supported for one in released), "a falsehood was released without a check of its meaning"
    assert all(one.outcome == "released" for one in outcomes if one.claim.kind == "verbatim")
    assert len(released) >= 10


async def test_few_true_claims_are_rejected_and_most_changed_values_are(outcomes: list[ClaimOutcome]) -> None:
    rejected = [one for one in outcomes if one.outcome == "rejected"]
    false = [one for one in rejected if one.claim.is_supported]
    assert len(false) <= 4, [f"{one.claim.text}: {one.problem}" for one in false]
    changed = [one for one in outcomes if one.claim.kind in EXACT_KINDS]
    found = sum(one.outcome == "rejected" for one in changed)
    assert found / len(changed) >= 0.58, "changed words for numbers and changed units stay open"


async def test_claims_of_both_halves_are_in_three_languages() -> None:
    claims = [claim for half in HALVES for claim in load_claims(half)[1]]
    assert len(claims) >= 300
    assert {claim.language for claim in claims} == {"en", "sv", "de"}
    assert {claim.label for claim in claims} == {"supported", "contradicted", "not_said"}
