"""Content blocks as data: how they are described, and how much of them is kept."""

from typing import Any

import pytest

from agent.core.content_blocks import (
    MAX_LISTED_OMISSIONS,
    describe_block,
    is_plain_text,
    limit_blocks,
    restore_bytes,
    strip_bytes,
)

PNG: dict[str, Any] = {"type": "image", "data": "QUJD" * 100, "mimeType": "image/png"}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def embedded(**resource: str) -> dict[str, Any]:
    return {"type": "resource", "resource": resource}


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (words("plain"), "plain"),
        (PNG, "[image, image/png, 300 bytes: not shown, because it is not text]"),
        (embedded(uri="a://b", text="of a resource"), "of a resource"),
        (embedded(uri="a://b", blob="QQ=="), "[a://b, of unknown type, 1 bytes: not shown, because it is not text]"),
        ({"type": "resource_link", "uri": "a://b", "name": "b"}, "[b](a://b)"),
        ({"type": "resource_link", "uri": "a://b", "name": "b", "description": "Fees"}, "[b](a://b): Fees"),
        ({"type": "hologram"}, "[hologram: not shown, because it is not text]"),
        ({"type": "audio", "data": 7, "mimeType": None}, "[audio: not shown, because it is not text]"),
    ],
)
def test_every_block_is_told_in_words(block: dict[str, Any], said: str) -> None:
    assert describe_block(block) == said


def test_what_is_told_of_a_block_is_bounded() -> None:
    long = "x" * 1_000_000
    assert len(describe_block({**PNG, "mimeType": long})) < 400
    assert len(describe_block({"type": "resource_link", "uri": long, "name": long, "description": long})) < 3_300


def test_only_one_plain_text_says_all_there_is() -> None:
    assert is_plain_text([])
    assert is_plain_text([words("a")])
    assert not is_plain_text([words("a"), words("b")])
    assert not is_plain_text([{**words("a"), "annotations": {"priority": 1}}])
    assert not is_plain_text([PNG])


def test_texts_are_cut_and_bytes_are_left_out_each_by_its_own_limit() -> None:
    link: dict[str, Any] = {"type": "resource_link", "uri": "a://b", "name": "b"}
    kept = limit_blocks(
        [words("a" * 90), PNG, words("b" * 90), words("c"), PNG, embedded(uri="d", text="d"), link], 100, 500
    )
    assert kept[:2] == (words("a" * 90), PNG)
    assert kept[2]["text"] == (
        "b" * 10 + "\n[cut: this text had 90 characters; texts of a result are limited to "
        "AGENT_TOOL_OUTPUT_CHARS characters]"
    )
    assert str(kept[3]["text"]).startswith("[text: omitted: texts of a result")
    assert str(kept[4]["text"]).startswith("[image, image/png, 300 bytes: omitted: images")
    assert str(kept[5]["text"]).startswith("[d: omitted: texts of a result")
    assert kept[6] == link


def test_neither_names_nor_numbers_of_blocks_go_beyond_the_limit() -> None:
    (wide,) = limit_blocks([{**PNG, "_meta": {"k" * 500: [["v" * 500]]}}], 900, 10_000)
    assert str(wide["text"]).startswith("[image, image/png, 300 bytes: omitted: texts")
    many = limit_blocks([PNG] * 1_000, 100_000, 0)
    assert len(many) == MAX_LISTED_OMISSIONS + 1
    assert many[-1] == words("[980 more were omitted]")


def test_bytes_are_put_back_where_they_were() -> None:
    blocks = [words("a"), PNG, embedded(uri="a://b", blob="QQ=="), embedded(uri="a://c", text="t")]
    bare, parts = strip_bytes(blocks)
    assert "QUJD" not in str(bare)
    assert "QQ" not in str(bare)
    assert restore_bytes(bare, parts) == blocks
