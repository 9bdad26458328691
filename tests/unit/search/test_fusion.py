"""Reciprocal rank fusion, against sums by hand."""

import pytest

from gateway.features.documents.engine.search.fusion import blend_scores, fuse_rankings, normalize_similarity
from gateway.features.documents.engine.search.scoring import make_monotone


def test_the_order_is_that_of_the_sums_by_hand() -> None:
    fused = fuse_rankings({"lexical": ["a", "b", "c"], "vector": ["c", "a", "d"]})
    assert [one.id for one in fused] == ["a", "c", "b", "d"]
    assert [one.score for one in fused] == pytest.approx([1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62, 1 / 63])
    assert fused[0].ranks == {"lexical": 1, "vector": 2}
    assert fused[3].ranks == {"vector": 3}


def test_a_branch_counts_by_its_weight() -> None:
    branches = {"lexical": ["a", "b"], "vector": ["b", "a", "c"]}
    assert [one.id for one in fuse_rankings(branches, {"vector": 0.5})] == ["a", "b", "c"]
    assert [one.id for one in fuse_rankings(branches, {"lexical": 0.5})] == ["b", "a", "c"]


def test_a_branch_without_weight_is_left_out_with_its_ids() -> None:
    fused = fuse_rankings({"lexical": ["a", "b"], "vector": ["c", "b"]}, {"vector": 0.0})
    assert [(one.id, one.ranks) for one in fused] == [("a", {"lexical": 1}), ("b", {"lexical": 2})]


def test_equal_sums_go_by_the_best_rank_then_by_the_id() -> None:
    assert [one.id for one in fuse_rankings({"lexical": ["b", "x"], "vector": ["a", "y"]})] == ["a", "b", "x", "y"]


def test_an_id_that_comes_twice_keeps_its_first_rank() -> None:
    assert fuse_rankings({"lexical": ["a", "a", "b"]})[1].ranks == {"lexical": 2}
    assert fuse_rankings({}) == []


def test_scores_are_made_to_fall_by_sharing_means() -> None:
    assert make_monotone([0.9, 0.4, 0.6, 0.1]) == pytest.approx([0.9, 0.5, 0.5, 0.1])
    assert make_monotone([0.1, 0.2, 0.9]) == pytest.approx([0.4, 0.4, 0.4])
    assert make_monotone([]) == []


def test_scores_are_shares_of_the_best_and_chance_is_not_blown_up() -> None:
    assert normalize_similarity(1.2, 1.2) == 1.0
    assert normalize_similarity(0.6, 1.2) == pytest.approx(0.5)
    assert normalize_similarity(0.1, 0.1) == pytest.approx(0.2), "the best of strangers stays a stranger"
    assert normalize_similarity(-0.3, 1.0) == 0.0
    assert blend_scores(0.8, 0.5, 1.0) == pytest.approx(1.3)
    assert blend_scores(0.8, 0.5, 0.0) == 0.8
