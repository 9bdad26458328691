"""Every text of a model's reasoning is found in the fields that providers send it in."""

from agent.core.models import JsonObject
from agent.llm.provider_fields import drop_reasoning, iter_reasoning_texts, map_reasoning

FIELDS: JsonObject = {
    "reasoning_content": "one",
    "reasoning": "two",
    "reasoning_details": [{"text": "three"}, {"summary": "four"}, {"data": "sealed"}],
    "thinking_blocks": [
        {"type": "thinking", "thinking": "five", "signature": "sealed"},
        {"type": "redacted", "data": "x"},
    ],
    "extra_content": {"google": {"thought_signature": "sealed"}},
}


def test_the_texts_of_all_fields_are_read() -> None:
    assert [*iter_reasoning_texts(FIELDS)] == ["one", "two", "three", "four", "five"]
    assert [*iter_reasoning_texts({"thinking_blocks": "no list", "reasoning_details": [None]})] == []


def test_a_block_whose_text_would_change_is_left_out_with_its_signature() -> None:
    mapped = map_reasoning(FIELDS, lambda text: text.replace("five", "").replace("one", "1"))
    assert mapped["thinking_blocks"] == [{"type": "redacted", "data": "x"}]
    assert mapped["reasoning_details"] == FIELDS["reasoning_details"]
    assert (mapped["reasoning_content"], mapped["extra_content"]) == ("1", FIELDS["extra_content"])


def test_a_message_without_reasoning_keeps_its_signatures() -> None:
    assert drop_reasoning(FIELDS) == {"extra_content": FIELDS["extra_content"]}
