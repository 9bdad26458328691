"""An answer from documents in a caller's JSON schema: followed with what was checked, or refused; never made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.answers.evidence import NOT_IN_DOCUMENTS
from agent.answers.schema_check import make_no_answer
from agent.runs.response import build_response
from tests.integration.test_tailor import HOW_MANY, TRUE, log_of
from tests.support.script import Rule, says, script

SENTENCE = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": SENTENCE,
        "days": {"type": ["integer", "null"]},
        "kind": {"enum": ["holiday", "travel"]},
    },
    "required": ["answer", "days", "kind"],
    "additionalProperties": False,
}
GOOD = {"answer": TRUE, "days": 28, "kind": "holiday"}
FORMING = "into a JSON object"
WRITING = "End every sentence that states a fact"


def form(schema: Any = None) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "leave", "strict": True, "schema": schema or SCHEMA}}


def writes(text: str) -> Rule:
    return says(text, to="completion", about=WRITING)


def forms(value: Any, **conditions: Any) -> Rule:
    text = value if isinstance(value, str) else json.dumps(value)
    return says(text, to="completion", **{"about": FORMING, **conditions})


async def ask_question(
    tmp_path: Path, *rules: Rule, question: str = HOW_MANY, schema: Any = None, model: bool = True
) -> Any:
    options = {"response_format": form(schema)}
    return await log_of(tmp_path, question, script(*rules) if model else None, options=options)


def failure(events: Any) -> Any:
    return events[-1].body.failure


async def test_the_checked_answer_is_put_into_the_schema_with_its_citations(tmp_path: Path) -> None:
    answer = build_response(await ask_question(tmp_path, forms(GOOD), writes(f"{TRUE} It is 99 days [1].")))
    assert json.loads(answer.response) == GOOD
    (citation,) = answer.metadata["citations"]
    assert citation["quote"] == "Every employee has 28 days of paid holiday a year."
    assert answer.metadata["status"] == "complete"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({**GOOD, "days": 30}, "days: 30 is not in the answer"),
        ({**GOOD, "answer": "Every employee has 30 days [1]."}, "answer: '30 days' is not in the answer"),
        ({**GOOD, "answer": TRUE.replace("[1]", "[3]")}, "answer: there is no source [3]"),
        ({**GOOD, "answer": TRUE.replace(" [1]", "")}, "answer: a sentence has lost its citation [n]"),
        ({**GOOD, "answer": "Holidays are given by Zidane [1]."}, "answer: the answer does not say"),
        ({**GOOD, "answer": "Dogs may be brought along [1]."}, "answer: the answer does not say"),
        ({**GOOD, "kind": "sickness"}, "kind: 'sickness' is not one of"),
        ({"answer": TRUE}, "the whole: 'days' is a required property"),
        ("Here you are!", "it is not JSON"),
    ],
)
async def test_what_the_answer_does_not_say_is_refused_after_a_second_try(
    tmp_path: Path, reply: Any, told: str
) -> None:
    events = await ask_question(tmp_path, forms(reply), writes(TRUE))
    assert failure(events).error_code == "ERR_TAILOR_SCHEMA"
    assert "the model put the answer into it 2 times" in failure(events).message
    assert told in failure(events).message


async def test_a_model_that_is_told_what_is_wrong_puts_it_right(tmp_path: Path) -> None:
    wrong = forms(f"```json\n{json.dumps({**GOOD, 'days': 30})}\n```", times=1)
    right = forms(GOOD, about="days: 30 is not in the answer")
    answer = build_response(await ask_question(tmp_path, wrong, right, writes(TRUE)))
    assert json.loads(answer.response) == GOOD


async def test_a_json_of_single_values_keeps_its_citations_beside_it(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
    answer = build_response(await ask_question(tmp_path, forms({"days": 28}), writes(TRUE), schema=schema))
    assert json.loads(answer.response) == {"days": 28}
    assert [one["source_id"] for one in answer.metadata["citations"]] == [1]


async def test_where_the_documents_do_not_say_the_schema_is_kept_or_the_answer_refused(tmp_path: Path) -> None:
    roomy = {**SCHEMA, "required": ["answer", "days"]}
    unknown = "Who won the football world cup in France?"
    answer = build_response(await ask_question(tmp_path, question=unknown, schema=roomy))
    assert json.loads(answer.response) == {"answer": NOT_IN_DOCUMENTS, "days": None}
    events = await ask_question(tmp_path / "again", question=unknown)  # `kind` would have to be made up
    assert failure(events).error_code == "ERR_TAILOR_SCHEMA"
    assert "the schema cannot express that" in failure(events).message


async def test_without_a_model_and_for_a_schema_that_is_none_it_is_refused(tmp_path: Path) -> None:
    without = failure(await ask_question(tmp_path, model=False))
    assert "needs a model, and no model is configured" in without.message
    broken = failure(await ask_question(tmp_path / "broken", writes(TRUE), schema={"type": "nonsense"}))
    assert "is not a JSON schema: 'nonsense' is not valid" in broken.message
    outside = {"$ref": "http://127.0.0.1:9/schema.json"}
    away = failure(await ask_question(tmp_path / "away", forms(GOOD), writes(TRUE), schema=outside))
    assert "a `$ref` of the schema cannot be resolved" in away.message


def test_the_least_that_can_be_said_in_a_schema_follows_its_references() -> None:
    schema: Any = {
        "$defs": {"place": {"type": "object", "properties": {"name": SENTENCE}, "required": ["name"]}},
        "type": "object",
        "properties": {"places": {"type": "array"}, "main": {"$ref": "#/$defs/place"}, "more": SENTENCE},
        "required": ["places", "main"],
    }
    assert make_no_answer(schema) == {"places": [], "main": {"name": NOT_IN_DOCUMENTS}}
    with pytest.raises(ValueError, match="demands"):
        make_no_answer({"type": "number"})
