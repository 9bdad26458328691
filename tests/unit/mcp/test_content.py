"""Content blocks as data: what is told of them, and how much of them is kept."""

from typing import Any

import pytest

from agent.core.content import NAMED, is_told, told, with_bytes, within, without_bytes

PNG: dict[str, Any] = {"type": "image", "data": "QUJD" * 100, "mimeType": "image/png"}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def embedded(**resource: str) -> dict[str, Any]:
    return {"type": "resource", "resource": resource}


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (words("plain"), "plain"),
        (PNG, "[image, image/png, 300 bytes: not shown, for it is no text]"),
        (embedded(uri="a://b", text="of a resource"), "of a resource"),
        (embedded(uri="a://b", blob="QQ=="), "[a://b, of no known type, 1 bytes: not shown, for it is no text]"),
        ({"type": "resource_link", "uri": "a://b", "name": "b"}, "[b](a://b)"),
        ({"type": "hologram"}, "[hologram: not shown, for it is no text]"),
        ({"type": "audio", "data": 7, "mimeType": None}, "[audio: not shown, for it is no text]"),
    ],
)
def test_every_block_is_told_in_words(block: dict[str, Any], said: str) -> None:
    assert told(block) == said


def test_what_is_told_of_a_block_is_bounded() -> None:
    long = "x" * 1_000_000
    assert len(told({**PNG, "mimeType": long})) < 400
    assert len(told({"type": "resource_link", "uri": long, "name": long})) < 2_300


def test_only_one_plain_text_says_all_there_is() -> None:
    assert is_told([])
    assert is_told([words("a")])
    assert not is_told([words("a"), words("b")])
    assert not is_told([{**words("a"), "annotations": {"priority": 1}}])
    assert not is_told([PNG])


def test_texts_are_cut_and_bytes_are_left_out_each_by_its_own_limit() -> None:
    link: dict[str, Any] = {"type": "resource_link", "uri": "a://b", "name": "b"}
    kept = within([words("a" * 90), PNG, words("b" * 90), words("c"), PNG, embedded(uri="d", text="d"), link], 100, 500)
    assert kept[:2] == (words("a" * 90), PNG)
    assert kept[2]["text"] == (
        "b" * 10 + "\n[cut: this text had 90 characters, and the texts of a result may have no more characters than "
        "AGENT_TOOL_OUTPUT_CHARS]"
    )
    assert str(kept[3]["text"]).startswith("[text: left out, for the texts of a result")
    assert str(kept[4]["text"]).startswith("[image, image/png, 300 bytes: left out, for the pictures")
    assert str(kept[5]["text"]).startswith("[d: left out, for the texts of a result")
    assert kept[6] == link


def test_neither_names_nor_numbers_of_blocks_go_beyond_the_limit() -> None:
    (wide,) = within([{**PNG, "_meta": {"k" * 500: [["v" * 500]]}}], 900, 10_000)
    assert str(wide["text"]).startswith("[image, image/png, 300 bytes: left out, for the texts")
    many = within([PNG] * 1_000, 100_000, 0)
    assert len(many) == NAMED + 1
    assert many[-1] == words("[980 more were left out]")


def test_bytes_are_put_back_where_they_were() -> None:
    blocks = [words("a"), PNG, embedded(uri="a://b", blob="QQ=="), embedded(uri="a://c", text="t")]
    bare, parts = without_bytes(blocks)
    assert "QUJD" not in str(bare)
    assert "QQ" not in str(bare)
    assert with_bytes(bare, parts) == blocks
