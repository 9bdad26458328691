"""Conversations about documents: follow-ups, several questions in a message, second searches, what is not said."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import Script, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.talk_questions import hold_talks, read_talks, upload_documents

HANDBOOK = """# Guide

## Boats

A boat costs 90 crowns a day. Boats are rented out by Greta Lund.

## Saunas

The sauna is open until ten in the evening. A towel costs five crowns.

## Harbours

The harbour of Greta Lund is Sandvik. Sandvik opens in April.
"""
RULES_RIGHT, RULES_REFUSED = 57, 31
"""Of 60 conversations with an answer and 31 without, as measured: 59 and 31."""
COMMON_CAPITALS = (
    "When does the harbour open on Wednesday?",
    "Is the sauna open in January 2025?",
    "What is the VAT on boats?",
)
WORKSHOP = """# Workshop rules

## Rent

The monthly rent is 310 crowns. It is due on the third.

## Deposit

The deposit is three rents. It is returned when the keys are handed in.

## Lathes

Oil the lathe every Friday. Ms Varga looks after the lathes and can be reached at 0555 31 07.

## Spare parts

Belts are sold by Rask in the harbour. A belt costs 12 crowns.

## Teletrabajo

El teletrabajo se pide al jefe.
"""


async def upload(client: httpx.AsyncClient, text: str = HANDBOOK) -> None:
    sent = await client.post("/v1/documents", files={"file": ("guide.md", text.encode())}, data={"collection": "work"})
    assert sent.status_code == 201, sent.text


async def ask(client: httpx.AsyncClient, message: str, session: str = "s") -> tuple[str, list[dict[str, Any]], int]:
    """The answer, the steps of the plan and the number of model calls."""
    body = {"user_message": message, "session_id": session, "user_id": "u"}
    sent = await client.post("/query", json=body)
    assert sent.status_code == 200, sent.text
    run = (await client.get(f"/v1/runs/{sent.headers['x-stepgate-run-id']}")).json()
    answer = sent.json()
    calls = [one for one in answer["trace"] if one["usage"]]
    return answer["final_response"]["content"], run["plan"]["steps"], len(calls)


def list_queries(steps: list[dict[str, Any]]) -> list[str]:
    return [step["args"]["query"] for step in steps if step["tool"] == "search_knowledge"]


async def test_the_measured_conversations_are_answered_by_rules(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload_documents(client)
        results = [one async for one in hold_talks(client, read_talks())]
    assert len(results) == 91
    assert sum(one.is_right for one in results if one.talk.expect) >= RULES_RIGHT
    assert sum(one.is_right for one in results if not one.talk.expect) >= RULES_REFUSED


@pytest.mark.row("S003-33")
async def test_without_a_model_a_follow_up_uses_the_words_before_and_says_so(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "What does a boat cost a day?")
        answer, steps, _ = await ask(client, "And who rents them?")
        assert answer.startswith("Read as a follow-up to \u201cWhat does a boat cost a day?\u201d:")
        assert "Greta Lund" in answer
        assert list_queries(steps)[0] == "What does a boat cost a day And who rents them?"
        answer, _, _ = await ask(client, "And in Norway?")
        assert answer == "The documents don't say."
        answer, steps, _ = await ask(client, "How long is the sauna open?")
        assert "until ten" in answer
        assert list_queries(steps) == ["How long is the sauna open?"], "a subject of its own needs no earlier words"


@pytest.mark.row("S003-33")
@pytest.mark.parametrize(
    ("message", "other"),
    [
        ("Compare it with the sauna", "sauna"),
        ("Jämför den med bastun", "bastun"),
        ("Vergleiche es mit Sandvik", "Sandvik"),
    ],
)
async def test_a_follow_up_that_compares_uses_the_words_before_and_says_so(
    serve: Serve, message: str, other: str
) -> None:
    async with serve(translate="off") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "What does a boat cost a day?")
        answer, steps, _ = await ask(client, message)
        before, own = list_queries(steps)
        assert before.startswith("What does a boat cost a day ")
        assert own == other
        says_so = answer.startswith("Read as a follow-up to \u201cWhat does a boat cost a day?\u201d:")
        assert says_so == (message.startswith("Compare")), (
            "in another language nothing is found, so that nothing is said of it"
        )


@pytest.mark.parametrize(
    ("message", "queries"),
    [
        ("Compare the sauna with its towel", ["sauna", "its towel"]),
        ("What is the difference between Elle and Vogue?", ["Elle", "Vogue"]),
        ("Compare IT with the sauna", ["IT", "sauna"]),
    ],
)
async def test_a_comparison_with_subjects_of_its_own_needs_no_words_before(
    serve: Serve, message: str, queries: list[str]
) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "What does a boat cost a day?")
        answer, steps, _ = await ask(client, message)
        assert list_queries(steps) == queries
        assert "follow-up" not in answer


async def test_a_message_without_content_is_not_what_a_follow_up_refers_to(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "What does a boat cost a day?")
        await ask(client, "Thanks!")
        answer, _, _ = await ask(client, "And who rents them?")
        assert answer.startswith("Read as a follow-up to \u201cWhat does a boat cost a day?\u201d:"), answer


@pytest.mark.row("S003-29")
@pytest.mark.parametrize(
    "follow_up",
    ["And when do they open in April?", "How many towels are allowed there?"],
    ids=["refers-back", "one-of-its-words"],
)
async def test_a_follow_up_is_not_answered_from_a_passage_about_something_else(serve: Serve, follow_up: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "Who rents out boats?")
        answer, _, _ = await ask(client, follow_up)
        assert answer == "The documents don't say."


@pytest.mark.row("S003-33")
async def test_the_model_plans_self_contained_searches_that_run_side_by_side(serve: Serve) -> None:
    searches = {"searches": ["Who rents boats?", "price of a towel"], "then": ""}
    model = script(
        says(json.dumps(searches), to="planner", about="And who rents them, and the towels?"),
        says("Boats are rented out by Greta Lund [1]. A towel costs five crowns [2].", to="completion"),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        _, _, calls = await ask(client, "What does a boat cost a day?")
        assert calls <= 2, "the words of a first message have a clear hit: only the answer is written"
        answer, steps, calls = await ask(client, "And who rents them, and the towels?")
        assert list_queries(steps)[:2] == ["Who rents boats?", "price of a towel"]
        assert [step["depends_on"] for step in steps if step["tool"] == "search_knowledge"] == [[]] * len(steps[:-1])
        assert "Greta Lund" in answer
        assert "five crowns" in answer


@pytest.mark.row("S003-33")
async def test_a_second_round_searches_what_only_the_first_could_name(serve: Serve) -> None:
    first = {"searches": ["who rents boats"], "then": "the harbour of the person who rents boats"}
    model = script(
        says(json.dumps(first), to="planner", times=1),
        says(json.dumps({"searches": ["harbour of Greta Lund"]}), to="planner", about="These were found already"),
        says("The harbour of Greta Lund is Sandvik [1].", to="completion"),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        answer, steps, _ = await ask(client, "Which harbour has the woman that hires out vessels?")
        assert "harbour of Greta Lund" in list_queries(steps)
        assert "Sandvik" in answer


async def test_a_model_that_plans_nothing_usable_leaves_the_searches_to_the_rules(serve: Serve) -> None:
    model = script(
        says("I like boats.", to="planner"), says("Boats are rented out by Greta Lund [1].", to="completion")
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "What does a boat cost a day?")
        answer, steps, _ = await ask(client, "And who rents them?")
        assert list_queries(steps)[0] == "What does a boat cost a day And who rents them?"
        assert "Greta Lund" in answer


async def test_the_words_of_an_unanswered_question_find_nothing_with_a_model_either(serve: Serve) -> None:
    searches = {"searches": ["price of a helicopter"], "then": ""}
    model: Script = script(says(json.dumps(searches), to="planner"), says("It costs 7 [1].", to="completion"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        answer, _, _ = await ask(client, "Which medal did the astronaut win?")
        assert answer == "The documents don't say."


async def test_a_passage_about_something_else_is_not_quoted_after_a_search_of_the_bare_words(serve: Serve) -> None:
    follow_up = "How many towels are allowed there?"
    searches = {"searches": [follow_up, f"Who rents out boats? {follow_up}"], "then": ""}
    model = script(says(json.dumps(searches), to="planner"), says("Seven towels are allowed [1].", to="completion"))
    async with serve(model, model_profile="small") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "Who rents out boats?")
        answer, _, _ = await ask(client, follow_up)
        assert answer == "The documents don't say."


async def test_with_a_small_model_no_part_of_a_message_is_left_out(serve: Serve) -> None:
    two = script(says("A towel costs five crowns. [1]", to="completion"), says("{}", to="planner"))
    async with serve(two, model_profile="small") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        answer, _, _ = await ask(
            client, "What does a towel cost in crowns and when does Sandvik harbour open?", "third"
        )
        assert "five crowns" in answer
        assert "Sandvik opens in April" in answer, "the model left the second question out"


async def test_a_small_model_that_overlooks_a_clear_passage_is_replaced_by_its_words(serve: Serve) -> None:
    model = script(says("The documents don't say.", to="completion"), says("{}", to="planner"))
    async with serve(model, model_profile="small") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        answer, _, _ = await ask(client, "What does a boat cost a day?")
        assert "A boat costs 90 crowns a day." in answer


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("And the deposit?", "three rents"),
        ("Also, when do I have to oil?", "every Friday"),
        ("That's not what I asked. How high is the deposit?", "three rents"),
        ("Forget that. When is the deposit returned?", "keys are handed in"),
        ("But who looks after the lathes?", "Varga"),
        ("\u00bfY el teletrabajo?", "se pide al jefe"),
    ],
)
async def test_a_message_that_changes_the_topic_is_answered_from_its_own_words(
    serve: Serve, message: str, expected: str
) -> None:
    async with serve(translate="off") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        await ask(client, "How much does a belt cost?")
        answer, _, _ = await ask(client, message)
        assert expected in answer
        assert "follow-up" not in answer
        assert "belt" not in answer


@pytest.mark.parametrize("message", ["And in the harbour?", "And for Rask?", "And who cleans?", "And the insurance?"])
async def test_a_phrase_that_adds_to_the_subject_begins_no_topic(serve: Serve, message: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        await ask(client, "How high is the deposit?")
        answer, _, _ = await ask(client, message)
        assert answer.startswith("The documents don't say.")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("How much is the rent and the deposit?", ["310 crowns", "three rents"]),
        ("I need: the rent, the deposit and the belts.", ["310 crowns", "three rents", "Rask"]),
        ("Hello, I have two questions. How high is the rent? And who sells belts?", ["310 crowns", "Rask"]),
    ],
)
async def test_each_thing_that_a_message_asks_for_is_quoted(serve: Serve, message: str, expected: list[str]) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        answer, _, _ = await ask(client, message)
        assert all(one in answer for one in expected), answer
        assert "These passages" not in answer


@pytest.mark.parametrize(
    ("message", "expected", "gap"),
    [
        ("How high is the rent and who is the mayor?", "310 crowns", "do not mention \u201cwho is the mayor\u201d"),
        ("How high is the rent, and can I keep a dog?", "310 crowns", "do not mention \u201ccan I keep a dog\u201d"),
        ("Who sells belts and who is the mayor of Rask?", "12 crowns", "may not answer \u201cwho is the mayor of Rask"),
    ],
)
async def test_the_part_of_a_message_that_nothing_answers_is_named(
    serve: Serve, message: str, expected: str, gap: str
) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        answer, _, _ = await ask(client, message)
        assert expected in answer
        assert f"These passages {gap}" in answer


async def test_thanks_are_not_what_a_first_question_follows(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        await ask(client, "Thanks!")
        answer, _, _ = await ask(client, "How high is the deposit?")
        assert answer.startswith("**guide.md")


@pytest.mark.parametrize("reply", ["Yes", "Spare parts", "the spare ones"])
async def test_the_question_which_subject_is_meant_can_be_answered(serve: Serve, reply: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        answer, _, _ = await ask(client, "Which spare aeroplane engines fly?")
        assert "\u201cSpare parts\u201d: is that meant?" in answer
        answer, _, _ = await ask(client, reply)
        assert "A belt costs 12 crowns." in answer
        assert "is that meant?" not in answer


async def test_a_question_of_its_own_is_no_reply_to_which_subject_is_meant(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        for message, expected in (("How high is the deposit?", "three rents"), ("Yes, how high is the rent?", "310")):
            await ask(client, "Which spare aeroplane engines fly?", message)
            answer, _, _ = await ask(client, message, message)
            assert expected in answer


async def test_a_long_message_is_searched_by_its_question(serve: Serve) -> None:
    pasted = "The belts of lathes and spare keys were discussed at length by everybody. " * 70
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        answer, steps, _ = await ask(client, f"{pasted}\nHow high is the deposit?")
        assert list_queries(steps) == ["How high is the deposit?"]
        assert "three rents" in answer
        answer, steps, _ = await ask(client, pasted, "other")
        assert len(list_queries(steps)[0]) <= 4_000
        assert "failed" not in answer


async def test_a_follow_up_without_the_asked_word_is_shown_the_subject_and_no_denial(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        await ask(client, "Who is Ms Varga?")
        answer, _, _ = await ask(client, "What is her number?")
        assert "I don't know. The closest passages, which may not answer the question:" in answer
        assert "0555 31 07" in answer
        assert "The documents don't say." not in answer


async def test_a_comparison_with_a_pronoun_has_each_side_under_its_name(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client, WORKSHOP)
        await ask(client, "What is the deposit?")
        answer, _, _ = await ask(client, "Compare it with the rent")
        assert "**It**" not in answer
        first, _, second = answer.partition("**Rent**")
        assert "three rents" in first
        assert "310 crowns" in second
        assert "three rents" not in second


@pytest.mark.parametrize(
    ("message", "is_planned"),
    [
        ("Who rents out the boats of the harbour, Greta Lund?", False),
        ("Are boats rented out by Greta Lund, and the helicopter?", True),
        ("Are boats rented out by Greta Lund and helicopters by Per Alm?", True),
    ],
)
async def test_searches_are_planned_unless_each_thing_asked_for_has_a_clear_hit(
    serve: Serve, model_server: ScriptedServer, message: str, is_planned: bool
) -> None:
    model = script(
        says(json.dumps({"searches": ["boats"], "then": ""}), to="planner"),
        says("Boats are rented out by Greta Lund. [1]", to="completion"),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, message)
    assert ("planner" in model_server.purposes()) == is_planned


async def test_what_stands_of_one_name_is_not_given_for_another_without_a_word(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        answer, _, _ = await ask(client, "When does the harbour of Marstrand open?")
        named, _, _ = await ask(client, "When does the harbour of Sandvik open?", "other")
        others = [(await ask(client, question, str(at)))[0] for at, question in enumerate(COMMON_CAPITALS)]
    assert "“Marstrand”" in answer
    assert not any("do not mention" in one for one in (named, *others))


async def test_a_pronoun_is_searched_by_the_name_that_the_answer_found(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "Who rents out boats?")
        answer, _, _ = await ask(client, "Which harbour is hers?")
    assert "Sandvik" in answer


async def test_a_remark_between_questions_is_not_what_a_follow_up_is_about(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        await ask(client, "What does a towel for the sauna cost?")
        await ask(client, "perfect, splendid weather")
        answer, _, _ = await ask(client, "and until when is it open?")
    assert "ten in the evening" in answer
    assert "splendid" not in answer


async def test_the_nearest_subjects_are_those_of_the_collection_that_was_asked(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await upload(client)
        sent = await client.post(
            "/v1/documents", files={"file": ("w.md", WORKSHOP.encode())}, data={"collection": "shop"}
        )
        assert sent.status_code == 201
        body = {"user_message": "What is the deposit?", "session_id": "s", "user_id": "u", "collection": "work"}
        answer = (await client.post("/query", json=body)).json()["final_response"]["content"]
    assert "Deposit" not in answer
