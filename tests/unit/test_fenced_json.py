"""JSON in Markdown code blocks, as models write it."""

import pytest

from agent.core.fenced_json import iterate_json_blocks, remove_json_fence


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '  {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```\n',
        '```JSON  \n{"a": 1}\n  ```',
        '```json {"a": 1}```',
        '```js\n{"a": 1}',  # cut off, or forgotten
    ],
)
def test_a_reply_is_freed_of_its_fence(text: str) -> None:
    assert remove_json_fence(text) == '{"a": 1}'


def test_complete_blocks_are_found_in_prose() -> None:
    text = 'First:\n```json\n{"a": 1}\n```\nthen\n```python\n{1: 2}\n```\nand\n```\n[2]\n```\nat last ```json\n{"b"'
    assert next(block[1].strip() for block in iterate_json_blocks(text)) == '{"a": 1}'
    assert '{"b"' not in "".join(block[1] for block in iterate_json_blocks(text))


def test_a_megabyte_of_fences_is_read_at_once() -> None:
    text = "```json\n" * 120_000
    assert len(list(iterate_json_blocks(text))) == 60_000
