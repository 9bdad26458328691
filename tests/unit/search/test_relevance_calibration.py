"""The least relevance for a collection, from the relevance that passages reach by chance."""

from pathlib import Path

import pytest

from gateway.features.documents.engine.search.relevance_calibration import (
    DEFAULT_THRESHOLD,
    KEYWORDS_EASE,
    MAX_THRESHOLD,
    MIN_SAMPLES,
    MIN_THRESHOLD,
    compute_threshold,
)
from tests.integration.test_relevance_labelled import open_library


@pytest.mark.parametrize(
    ("chance", "threshold"),
    [
        ([0.9] * (MIN_SAMPLES - 1), DEFAULT_THRESHOLD),
        ([0.0] * 100, MIN_THRESHOLD),
        ([0.9] * 100, MAX_THRESHOLD),
        ([0.48] * 8, 0.44),
    ],
)
def test_the_threshold_follows_the_measurement_within_its_bounds(chance: list[float], threshold: float) -> None:
    assert compute_threshold(chance) == pytest.approx(threshold)


async def test_a_collection_that_shares_its_words_has_a_higher_threshold_and_keywords_a_lower_one(
    tmp_path: Path,
) -> None:
    alike, apart = [], []
    for number, subject in enumerate(
        ("ferry", "bakery", "garden", "library", "harbour", "theatre", "clinic", "museum", "quarry", "school")
    ):
        one, other = tmp_path / f"alike{number}.md", tmp_path / f"apart{number}.md"
        one.write_text(f"The annual report of department {subject} describes the budget and the planned costs.\n")
        other.write_text(
            f"The {subject}a of the {subject}b is under the {subject}c by the {subject}d with {subject}e.\n"
        )
        alike.append(one)
        apart.append(other)
    thresholds = []
    for folder, documents in (("a", alike), ("b", apart)):
        (tmp_path / folder).mkdir()
        async with open_library(tmp_path / folder, documents) as library:
            question, keywords = [
                await library.get_relevance_threshold("local", "work", one)
                for one in ("What does the report describe?", "annual report")
            ]
            thresholds.append(question)
            assert question - keywords == pytest.approx(KEYWORDS_EASE)
    assert thresholds[0] > thresholds[1] == MIN_THRESHOLD
