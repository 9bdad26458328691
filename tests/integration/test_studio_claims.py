"""What a model claims and nothing has done is at no door a success, and a question shows its values at every door."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_ag_ui import read, text_of, turn, verify
from tests.integration.test_studio_compound import decide, send
from tests.support.script import Rule, answers, says, script
from tests.support.studio import concludes, intent, routes

pytestmark = pytest.mark.usefixtures("each_profile")

CLAIM = "I have created both rooms."


def creates(name: str, **values: Any) -> dict[str, Any]:
    return intent("room_management", "room_create", name=name, request="make a room", **values)


def says_to_router(text: str) -> Rule:
    return says(text, to="router")


async def chat(client: httpx.AsyncClient, text: str) -> tuple[str, str]:
    body = {"model": "studio", "messages": [{"role": "user", "content": text}]}
    response = (await client.post("/v1/chat/completions", json=body)).json()
    return response["choices"][0]["message"]["content"], response["metadata"]["status"]


async def stream_chat(client: httpx.AsyncClient, text: str) -> str:
    body = {"model": "studio", "stream": True, "messages": [{"role": "user", "content": text}]}
    lines = (await client.post("/v1/chat/completions", json=body)).text.split("\n")
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return "".join(one["delta"].get("content") or "" for chunk in chunks for one in chunk["choices"])


@pytest.mark.parametrize(
    "router",
    [
        says_to_router("I made them."),
        says_to_router('{"intents": [{"category": "gardening", "action": "dig"}]}'),
        routes(),
    ],
)
@pytest.mark.row("S002-42")
async def test_a_claim_in_the_place_of_the_router_is_no_success_at_any_door(serve: Serve, router: Rule) -> None:
    text = "make 2 rooms: Desk 0, Desk 1"
    model = script(router, answers(CLAIM), says(CLAIM, to="completion"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        content, status = await chat(client, text)
        streamed = await stream_chat(client, text)
        studio = await send(client, text)
        agent = (await client.post("/v1/agent", json={"prompt": text, "room": "studio"})).json()
        events = await read(client, turn(text, forwardedProps={"room": "studio"}))
        made = [one["id"] for one in (await client.get("/v1/rooms")).json()["data"] if one["origin"] == "managed"]
    assert made == []
    assert (status, studio["status"], agent["metadata"]["status"]) == ("partial", "error", "partial")
    verify(events)
    for told in (content, streamed, studio["answer"], agent["response"], text_of(events)):
        assert told.startswith("Nothing was looked up or changed: "), told


@pytest.mark.row("S002-42")
async def test_an_answer_about_the_gateway_without_a_look_is_not_told_as_done(serve: Serve) -> None:
    ask = intent("query", "explain", request="which rooms use web_fetch")
    model = script(routes(ask), concludes("Only the room Legal uses it."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        content, status = await chat(client, "which rooms use web_fetch?")
        studio = await send(client, "which rooms use web_fetch?")
    assert (status, studio["status"], studio["outcomes"][0]["status"]) == ("partial", "error", "failed")
    assert content.startswith("Nothing was looked up: no tool was called for it."), content


async def test_a_question_shows_every_value_at_every_door(serve: Serve) -> None:
    """The words of a step are the router's, and may be about something else than its values."""
    payroll = creates("Payroll", description="salaries for everyone")
    values = ("Payroll", "salaries for everyone", "Green Desk")
    text = "make rooms Payroll, described as salaries for everyone, and Green Desk"
    model = script(routes(payroll, creates("Green Desk")))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        questions = {
            "chat": (await chat(client, text))[0],
            "stream": await stream_chat(client, text),
            "studio": (await send(client, text))["answer"],
            "agent": (await client.post("/v1/agent", json={"prompt": text, "room": "studio"})).json()["response"],
            "responses": (await client.post("/v1/responses", json={"model": "studio", "input": text})).text,
        }
        events = await read(client, turn(text, forwardedProps={"room": "studio"}))
        questions["ag-ui"] = events[-1]["outcome"]["interrupts"][0]["message"]
        waiting = (await client.get("/v1/approvals")).json()["data"]
    questions |= {f"list {place}": one["question"] for place, one in enumerate(waiting)}
    assert len(waiting) >= 5
    for door, question in questions.items():
        assert [value for value in values if value not in question] == [], (door, question)


@pytest.mark.parametrize("needs", [([], [1]), ([0], [0]), ([1], []), ([], [9])])
async def test_requests_in_an_order_that_cannot_be_are_carried_out(serve: Serve, needs: tuple[list[int], ...]) -> None:
    """A small model counts from 1, or names a request itself: each request is complete all the same."""
    made = [creates(f"Desk {at}", depends_on=others) for at, others in enumerate(needs)]
    model = script(routes(*made), answers(CLAIM))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        done = await decide(client, url, await send(client, "make 2 rooms: Desk 0, Desk 1"))
        rooms = [one["id"] for one in (await client.get("/v1/rooms")).json()["data"] if one["origin"] == "managed"]
    assert (done["status"], sorted(rooms)) == ("succeeded", ["desk-0", "desk-1"]), done
