"""Chats at `/v1/conversations`: messages and their branches, stopped answers, lists, exports; by owner."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.script import Script, plans, says, script
from tests.support.scripted_server import ScriptedServer

LONG = "The harbour was quiet. " * 40
CAREFUL = {"id": "careful", "name": "Careful", "approval": "always"}


@asynccontextmanager
async def chatting(serve: Serve, model: Script | None = None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(model, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


async def new_chat(client: httpx.AsyncClient, **metadata: str) -> str:
    made = await client.post("/v1/conversations", json={"metadata": metadata})
    assert made.status_code == 200, made.text
    return str(made.json()["id"])


async def send(client: httpx.AsyncClient, chat: str, content: str | None, **body: Any) -> dict[str, Any]:
    """Sends a message and waits for its answer."""
    asked = {"room": "chat", **({"content": content} if content is not None else {}), **body}
    sent = await client.post(f"/v1/conversations/{chat}/messages", json=asked)
    assert sent.status_code == 202, sent.text
    found: dict[str, Any] = sent.json()
    async with client.stream("GET", f"/v1/conversations/{chat}/messages/{found['answer']}/events") as following:
        async for _ in following.aiter_lines():
            pass
    return found


async def contents(client: httpx.AsyncClient, chat: str, **query: Any) -> list[str]:
    listed = (await client.get(f"/v1/conversations/{chat}/messages", params=query)).json()
    return [one["content"] for one in listed["data"]]


def spoken(upstream: ScriptedServer) -> list[str]:
    sent = upstream.requests()[-1]["body"]["messages"]
    return [one["content"] for one in sent if one["role"] != "system"]


def echo() -> Script:
    """A model that says which letter it was asked about."""
    return script(*(says(f"about {letter}", about=f"letter {letter}?") for letter in "ZYXWVEDCBA"))


async def test_a_message_that_names_a_parent_begins_a_branch(serve: Serve, model_server: ScriptedServer) -> None:
    async with chatting(serve, echo()) as client:
        chat = await new_chat(client)
        first = await send(client, chat, "letter A?")
        second = await send(client, chat, "letter B?")
        edited = await send(client, chat, "letter C?", parent=first["answer"])
        assert [one["parent"] for one in (first, second, edited)] == [None, first["answer"], first["answer"]]
        assert spoken(model_server) == ["letter A?", "about A", "letter C?"], "without the other branch"
        assert await contents(client, chat) == ["letter A?", "about A", "letter C?", "about C"]
        assert (await send(client, chat, "letter D?"))["parent"] == edited["answer"]
        assert spoken(model_server) == ["letter A?", "about A", "letter C?", "about C", "letter D?"]
        listed = (await client.get(f"/v1/conversations/{chat}/messages")).json()
        versions = listed["data"][2]["siblings"]
        assert len(versions) == 2
        assert versions[1] == edited["user_message"]
        back = await client.put(f"/v1/conversations/{chat}/head", json={"message": versions[0]})
        assert back.status_code == 204
        assert await contents(client, chat) == ["letter A?", "about A", "letter B?", "about B"]
        await send(client, chat, "letter E?")
        assert spoken(model_server) == ["letter A?", "about A", "letter B?", "about B", "letter E?"]
        await send(client, chat, "letter Z?", parent="root")
        assert spoken(model_server) == ["letter Z?"]
        assert await contents(client, chat) == ["letter Z?", "about Z"]


async def test_a_question_is_answered_again_beside_its_first_answer(serve: Serve, model_server: ScriptedServer) -> None:
    async with chatting(serve, echo()) as client:
        chat = await new_chat(client)
        await send(client, chat, "letter A?")
        asked = await send(client, chat, "letter B?")
        again = await send(client, chat, None, parent=asked["user_message"])
        assert spoken(model_server) == ["letter A?", "about A", "letter B?"]
        listed = (await client.get(f"/v1/conversations/{chat}/messages")).json()
        assert listed["head"] == again["answer"]
        assert listed["data"][2]["siblings"] == [asked["user_message"], again["user_message"]]


async def test_an_old_conversation_is_one_line(serve: Serve, model_server: ScriptedServer) -> None:
    async with chatting(serve, echo()) as client:
        for letter in "AB":
            asked = {"prompt": f"letter {letter}?", "conversation_id": "web-old", "room": "chat"}
            assert (await client.post("/v1/agent", json=asked)).status_code == 200
        listed = (await client.get("/v1/conversations/web-old/messages")).json()
        assert [one["content"] for one in listed["data"]] == ["letter A?", "about A", "letter B?", "about B"]
        assert listed["data"][2]["parent"] == listed["data"][1]["id"]
        await send(client, "web-old", "letter C?", parent=listed["data"][1]["id"])
        assert spoken(model_server) == ["letter A?", "about A", "letter C?"]
        assert [one["id"] for one in (await client.get("/v1/conversations")).json()["data"]] == ["web-old"]


async def test_a_parent_of_another_conversation_is_refused(serve: Serve) -> None:
    async with chatting(serve, echo()) as client:
        one, other = await new_chat(client), await new_chat(client)
        sent = await send(client, one, "letter A?")
        for parent in (sent["answer"], "msg_run_none-assistant", "x"):
            body = {"content": "letter B?", "parent": parent}
            refused = await client.post(f"/v1/conversations/{other}/messages", json=body)
            assert refused.status_code == 400, refused.text
            assert "has no message" in refused.json()["error"]["message"]
        events = await client.get(f"/v1/conversations/{other}/messages/{sent['answer']}/events")
        assert events.status_code == 404
        empty = await client.post(f"/v1/conversations/{other}/messages", json={"content": " "})
        assert empty.status_code == 400


async def test_a_message_to_a_deleted_conversation_is_refused(serve: Serve) -> None:
    async with chatting(serve, echo()) as client:
        chat = await new_chat(client)
        await send(client, chat, "letter A?")
        assert (await client.delete(f"/v1/conversations/{chat}")).status_code == 200
        for unknown in (chat, "conv_0", "web-new"):
            refused = await client.post(f"/v1/conversations/{unknown}/messages", json={"content": "letter B?"})
            assert refused.status_code == 404, refused.text
            assert "there is no conversation" in refused.json()["error"]["message"]
        assert (await client.get("/v1/conversations")).json()["data"] == []


async def test_a_conversation_that_a_run_has_just_named_takes_messages(serve: Serve) -> None:
    async with chatting(serve, script(says(LONG, about="letter A?", pause_s=0.2), says("about B"))) as client:
        asked = {"prompt": "letter A?", "room": "chat", "conversation_id": "web-going", "background": True}
        begun = await client.post("/v1/agent", json=asked)
        assert begun.status_code == 202, begun.text
        await send(client, "web-going", "letter B?")
        assert "about B" in await contents(client, "web-going")


async def test_a_stopped_answer_keeps_what_was_written_and_is_remembered(
    serve: Serve, model_server: ScriptedServer
) -> None:
    slow = script(says("about B", about="letter B?"), says(LONG, chunk=20, pause_s=0.05))
    async with chatting(serve, slow) as client:
        chat = await new_chat(client)
        asked = {"content": "Describe the harbour", "room": "chat"}
        sent = (await client.post(f"/v1/conversations/{chat}/messages", json=asked)).json()
        seen, view = "", None
        async with client.stream("GET", f"/v1/conversations/{chat}/messages/{sent['answer']}/events") as following:
            name = ""
            async for line in following.aiter_lines():
                name = line.removeprefix("event: ") if line.startswith("event:") else name
                if not line.startswith("data:"):
                    continue
                data = json.loads(line[5:])
                if name == "blocks" and data["blocks"] and not seen:
                    seen = data["blocks"][0]["html"]
                    assert "harbour" in seen
                    stopped = await client.post(f"/v1/conversations/{chat}/messages/{sent['answer']}/stop")
                    assert stopped.status_code == 202
                if name == "view":
                    view = data
        assert view is not None
        assert (view["status"], view["metadata"]["stopped"]) == ("cancelled", True)
        assert LONG.startswith(view["text"])
        assert 10 < len(view["text"]) < len(LONG) - 100
        assert view["html"].startswith("<p>The harbour")
        await send(client, chat, "letter B?")
        assert spoken(model_server) == ["Describe the harbour", view["text"], "letter B?"]


async def test_a_question_that_got_no_answer_is_remembered(serve: Serve, model_server: ScriptedServer) -> None:
    model = script(
        says("about B", about="letter B?"),
        says("", about="silent?"),
        says("", about="refused?", fault="status_400"),
        says("late", about="slow?", delay_s=5.0),
    )
    async with chatting(serve, model) as client:
        chat = await new_chat(client)
        asked = {"content": "slow?", "room": "chat"}
        sent = (await client.post(f"/v1/conversations/{chat}/messages", json=asked)).json()
        stopped = await client.post(f"/v1/conversations/{chat}/messages/{sent['answer']}/stop")
        assert stopped.status_code == 202
        async with client.stream("GET", f"/v1/conversations/{chat}/messages/{sent['answer']}/events") as following:
            assert "Stopped before it was finished." in "".join([line async for line in following.aiter_lines()])
        for text in ("refused?", "silent?", "letter B?"):
            await send(client, chat, text)
        assert spoken(model_server) == ["slow?", "refused?", "silent?", "letter B?"]


async def test_a_stopped_answer_passes_the_rooms_policy(serve: Serve) -> None:
    written = "Write to anna.berg@harbour-office.se. " + LONG
    slow = script(plans({"tool": "completion"}), says(written, to="completion", chunk=30, pause_s=0.05))
    async with chatting(serve, slow) as client:
        chat = await new_chat(client)
        asked = {"content": "Plan how to describe the harbour", "room": "stepgate"}
        sent = (await client.post(f"/v1/conversations/{chat}/messages", json=asked)).json()
        async with client.stream("GET", f"/v1/conversations/{chat}/messages/{sent['answer']}/events") as following:
            async for line in following.aiter_lines():
                if "harbour was" in line:
                    await client.post(f"/v1/conversations/{chat}/messages/{sent['answer']}/stop")
                    break
        for _ in range(100):
            answer = (await client.get(f"/v1/conversations/{chat}/messages")).json()["data"][1]
            if answer["status"] == "cancelled":
                break
            await asyncio.sleep(0.1)
        assert "[removed: EMAIL]" in answer["content"]
        assert "anna.berg@harbour-office.se" not in json.dumps(answer)


async def test_a_followed_answer_is_complete_after_a_lost_connection(serve: Serve) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        says("# Result\n\nIt is **42**.\n\n- one\n- two\n\n" + LONG, to="completion", chunk=20, pause_s=0.02),
    )
    async with chatting(serve, model) as client:
        chat = await new_chat(client)
        asked = {"content": "Compute 6*7 and describe", "room": "stepgate"}
        sent = (await client.post(f"/v1/conversations/{chat}/messages", json=asked)).json()
        path = f"/v1/runs/{sent['run_id']}/events?render=html"
        last, blocks = "0", 0
        async with client.stream("GET", path) as following:
            async for line in following.aiter_lines():
                if line.startswith("id:"):
                    last = line[3:].strip()
                if line == "event: blocks":
                    blocks += 1
                if blocks == 4:
                    break
        frames: list[tuple[str, Any]] = []
        async with client.stream("GET", path, headers={"last-event-id": last}) as following:
            name = ""
            async for line in following.aiter_lines():
                name = line.removeprefix("event: ") if line.startswith("event:") else name
                if line.startswith("data:"):
                    frames.append((name, json.loads(line[5:])))
        shown: dict[int, str] = {}
        for name, data in frames:
            if name == "blocks":
                shown = {} if data["restart"] else shown
                shown |= {one["index"]: one["html"] for one in data["blocks"]}
        assert list(shown) == [0, 1, 2, 3]
        assert shown[0] == "<h3>Result</h3>\n"
        assert shown[1] == "<p>It is <strong>42</strong>.</p>\n"
        views = [data for name, data in frames if name == "view"]
        assert views[-1]["status"] == "succeeded"
        assert "".join(shown.values()).split() == views[-1]["html"].split(), "as the whole is rendered at the end"
        lines = [data["text"] for name, data in frames if name == "progress"]
        assert lines[0] == "Writing the answer", "what was being done before is over"
        assert [data["restart"] for name, data in frames if name == "blocks"].count(True) == 1
        stored = (await client.get(f"/v1/conversations/{chat}/messages?render=html")).json()["data"][1]
        assert stored["view"]["html"] == views[-1]["html"]
        assert stored["view"]["steps"] == views[-1]["steps"]
        ended = await client.get(path, headers={"last-event-id": str(views[-1]["seq"])})
        assert ended.status_code == 204


async def test_chats_are_listed_searched_renamed_exported_and_deleted(serve: Serve) -> None:
    async with chatting(serve, echo()) as client:
        one = await new_chat(client)
        await send(client, one, "letter A?")
        other = await new_chat(client)
        await send(client, other, "letter B? 100 %_!")
        await client.post("/v1/agent", json={"prompt": "letter C?", "conversation_id": "elsewhere", "room": "chat"})

        async def list_ids(query: str) -> list[str]:
            listed = await client.get("/v1/conversations", params={"query": query})
            return [entry["id"] for entry in listed.json()["data"]]

        assert await list_ids("") == [other, one]
        assert await list_ids('"LETTER a"') == [one]
        assert await list_ids('"about B"') == [other], "words of an answer"
        assert await list_ids("100 %_!") == [other]
        assert await list_ids("%") == [other]
        assert await list_ids("nowhere") == []
        await client.post(f"/v1/conversations/{one}", json={"metadata": {"title": "Alphabet"}})
        assert await list_ids("alphabet") == [one]
        assert await list_ids("title") == [], "only the title itself is searched"
        page = (await client.get("/v1/conversations", params={"limit": 1})).json()
        rest = (await client.get("/v1/conversations", params={"limit": 1, "before": page["next"]})).json()
        assert [entry["title"] for entry in rest["data"]] == ["Alphabet"]
        text = (await client.get(f"/v1/conversations/{one}/export")).text
        assert text == "# Alphabet\n\n## You\n\nletter A?\n\n## Stepgate\n\nabout A\n"
        as_json = (await client.get(f"/v1/conversations/{one}/export?format=json")).json()
        assert [message["role"] for message in as_json["data"]] == ["user", "assistant"]
        assert (await client.delete(f"/v1/conversations/{one}")).status_code == 200
        assert await list_ids("") == [other]
        assert (await client.get(f"/v1/conversations/{one}/messages")).status_code == 404


async def test_chats_are_found_by_words_of_their_messages(serve: Serve) -> None:
    model = script(
        says("A hammer.", about="Which tool?"), says("Anna mended the lift.", about="Who helped?"),
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute"),
    )  # fmt: skip
    async with chatting(serve, model) as client:
        assert (await client.post("/v1/rooms", json=CAREFUL)).status_code == 201
        one, other, asking = [await new_chat(client) for _ in range(3)]
        helped = await send(client, one, "Who helped?")
        await send(client, one, "Which tool?")
        await send(client, other, "Which tool?")
        sent = {"content": "Compute the tool budget", "room": "careful"}
        assert (await client.post(f"/v1/conversations/{asking}/messages", json=sent)).status_code == 202

        async def search(query: str) -> dict[str, Any]:
            listed = (await client.get("/v1/conversations", params={"query": query})).json()["data"]
            return {entry["id"]: entry["match"] for entry in listed}

        assert await search("LIFT anna") == {one: {"message": helped["answer"], "excerpt": "Anna mended the lift."}}
        assert list(await search("lift hammer")) == [one], "in different messages"
        assert await search('"lift anna"') == {}
        assert list(await search('"mended the lift"')) == [one]
        assert list(await search("tool budget")) == [asking], "a message that has no answer yet"
        assert list(await search("tool")) == [asking, other, one]
        assert (await search(""))[one] is None
        await client.post(f"/v1/conversations/{other}", json={"metadata": {"title": "Garage"}})
        assert list(await search("garage hammer")) == [other], "in the title and in a message"


async def test_a_phrase_is_found_as_it_is_displayed(serve: Serve) -> None:
    answer = "They are red  and\n\tblue, and `cost` **50\u00a0EUR** per month."
    async with chatting(serve, script(says(answer, about="Which boats?"))) as client:
        chat = await new_chat(client)
        await send(client, chat, "Which boats?")
        await client.post(f"/v1/conversations/{chat}", json={"metadata": {"title": "Boats  of\tAnna"}})

        async def search(query: str) -> list[tuple[str, bool]]:
            listed = (await client.get("/v1/conversations", params={"query": query})).json()["data"]
            return [(entry["id"], entry["match"] is not None) for entry in listed]

        for phrase in ("red and blue", "RED  AND", "cost 50 EUR per month", "**50 eur** per", "are red"):
            assert await search(f'"{phrase}"') == [(chat, True)], phrase
        for phrase in ("red blue", "blue and red", "red an d", "red_and", "50 % per"):
            assert await search(f'"{phrase}"') == [], phrase
        assert await search('"boats of anna"') == [(chat, False)]


async def test_only_messages_of_the_page_are_matches(serve: Serve) -> None:
    async with chatting(serve, script(says("In the garden.", about="Where?"))) as client:
        added = [{"role": role, "content": f"{role}: tulips"} for role in ("developer", "user", "assistant")]
        chat = (await client.post("/v1/conversations", json={"items": added})).json()["id"]
        sent = await send(client, chat, "Where?")
        for query, message in (("tulips", None), ("garden", sent["answer"]), ("tulips garden", sent["answer"])):
            listed = (await client.get("/v1/conversations", params={"query": query})).json()["data"]
            assert [(one["id"], (one["match"] or {}).get("message")) for one in listed] == [(chat, message)]


async def test_another_version_of_a_waiting_question_withdraws_its_approval(serve: Serve) -> None:
    asks = plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute")
    async with chatting(serve, script(asks, says("It is 42."))) as client:
        assert (await client.post("/v1/rooms", json=CAREFUL)).status_code == 201
        chat, other = await new_chat(client), await new_chat(client)

        async def ask(chat: str, words: str | None, expected: int, **body: Any) -> dict[str, Any]:
            asked = {"room": "careful", **({} if words is None else {"content": words}), **body}
            sent = (await client.post(f"/v1/conversations/{chat}/messages", json=asked)).json()
            for _ in range(200):
                waiting = (await client.get("/v1/approvals")).json()["data"]
                if [one["run_id"] for one in waiting].count(sent["run_id"]) and len(waiting) == expected:
                    return dict(sent)
                await asyncio.sleep(0.05)
            raise AssertionError(waiting)

        elsewhere = await ask(other, "Compute it elsewhere", 1)
        first = await ask(chat, "Compute it", 2)
        second = await ask(chat, "Compute it, please", 2, parent="root", withdraw=True)
        third = await ask(chat, None, 2, parent=second["user_message"], withdraw=True)
        waiting = {one["run_id"] for one in (await client.get("/v1/approvals")).json()["data"]}
        assert waiting == {elsewhere["run_id"], third["run_id"]}
        for replaced in (first, second):
            run = (await client.get(f"/v1/runs/{replaced['run_id']}")).json()
            assert run["status"] == "cancelled"


async def test_a_conversation_is_answered_from_the_collection_that_its_metadata_names(serve: Serve) -> None:
    async with chatting(serve) as client:
        for name, colour in (("one", "blue"), ("two", "red")):
            text = f"# Devices\n\nLost devices go to the {colour} desk.\n".encode()
            sent = await client.post("/v1/documents", files={"file": ("a.md", text)}, data={"collection": name})
            assert sent.status_code == 201, sent.text
        chat = await new_chat(client, collection="two")
        assert (await client.get(f"/v1/conversations/{chat}/messages")).json()["collection"] == "two"
        question = "Where do lost devices go?"
        await send(client, chat, question, room="knowledge")
        await send(client, chat, question, room="knowledge", metadata={"collection": "one"})
        colours = [("red" in one, "blue" in one) for one in (await contents(client, chat))[1::2]]
        assert colours == [(True, False), (False, True)], "a message may name another one"
        assert (await client.get(f"/v1/conversations/{chat}/messages")).json()["collection"] == "two"


async def test_a_long_chat_comes_in_pages(serve: Serve) -> None:
    async with chatting(serve, script(says("yes"))) as client:
        chat = await new_chat(client)
        for number in range(5):
            await send(client, chat, f"question {number}")
        page = (await client.get(f"/v1/conversations/{chat}/messages?limit=2")).json()
        bare = (await client.get(f"/v1/conversations/{chat}/messages?limit=0")).json()
        assert (bare["data"], bare["head"], bare["previous"]) == ([], page["head"], None)
        assert [one["content"] for one in page["data"][::2]] == ["question 3", "question 4"]
        earlier = await client.get(f"/v1/conversations/{chat}/messages?limit=2&before={page['previous']}")
        assert [one["content"] for one in earlier.json()["data"][::2]] == ["question 1", "question 2"]


FAULTS = 4
"""More than the calls of one message."""


@pytest.mark.parametrize("broken", ["status_500", "disconnect"])
async def test_a_failure_is_a_message_that_can_be_sent_again(serve: Serve, broken: Any) -> None:
    model = script(says(fault=broken, about="letter A?", times=FAULTS), says("about A"))
    async with chatting(serve, model) as client:
        chat = await new_chat(client)
        sent = await send(client, chat, "letter A?")
        answer = (await client.get(f"/v1/conversations/{chat}/messages?render=html")).json()["data"][1]
        assert answer["status"] == "failed"
        assert answer["view"]["metadata"]["failure"]["error_code"].startswith("ERR_MODEL")
        assert answer["view"]["html"] is None
        for _ in range(FAULTS):
            again = await send(client, chat, None, parent=sent["user_message"])
            if (await contents(client, chat))[1] == "about A":
                break
        assert (await contents(client, chat))[1] == "about A"
        assert again["run_id"] != sent["run_id"]


async def test_runs_are_found_by_words_room_and_time(serve: Serve) -> None:
    async with chatting(serve, echo()) as client:
        chat = await new_chat(client)
        one = await send(client, chat, "letter A? 50 %")
        other = await send(client, chat, "letter B?", room="stepgate")

        async def list_ids(**query: Any) -> list[str]:
            listed = await client.get("/v1/runs", params=query)
            assert listed.status_code == 200, listed.text
            return [run["id"] for run in listed.json()["data"]]

        assert await list_ids(query="LETTER a") == [one["run_id"]]
        assert await list_ids(query="%") == [one["run_id"]]
        assert await list_ids(query=other["run_id"]) == [other["run_id"]]
        assert await list_ids(room="stepgate") == [other["run_id"]]
        assert await list_ids(room="chat", query="letter") == [one["run_id"]]
        assert await list_ids(since="2020-01-01T00:00:00Z", until="2020-02-01T00:00:00Z") == []
        assert await list_ids(since="2020-01-01T00:00:00Z") == [other["run_id"], one["run_id"]]
        assert await list_ids(query="letter", limit=1, before=other["run_id"]) == [one["run_id"]]
        for _ in range(200):  # what a run used is recorded after its end
            if (ids := await list_ids(model="small")) == [other["run_id"], one["run_id"]]:
                break
            await asyncio.sleep(0.05)
        assert ids == [other["run_id"], one["run_id"]]
        assert await list_ids(model="another") == []
        detail = (await client.get(f"/v1/runs/{one['run_id']}")).json()
        assert detail["model_calls"][0]["completion_tokens"] > 0
        listed = (await client.get("/v1/runs")).json()["data"]
        assert all(run["total_tokens"] > 0 for run in listed)


async def test_keys_are_made_shown_once_and_revoked(serve: Serve) -> None:
    async with chatting(serve) as client:
        me = (await client.get("/v1/me")).json()
        assert (me["key"], "admin" in me["scopes"]) == (None, True)
        asked = {"owner": "anna", "name": "laptop", "scopes": ["chat"], "limits": {"budget_tokens": 1000}}
        made = await client.post("/v1/admin/keys", json=asked)
        assert made.status_code == 201, made.text
        text, key = made.json()["text"], made.json()["id"]
        listed = (await client.get("/v1/admin/keys")).json()["data"]
        assert [(one["id"], one["owner"], one["limits"]["budget_tokens"]) for one in listed] == [(key, "anna", 1000)]
        assert text not in json.dumps(listed)
        hers = {"authorization": f"Bearer {text}"}
        assert (await client.get("/v1/me", headers=hers)).json()["scopes"] == ["chat"]
        assert (await client.get("/v1/admin/keys", headers=hers)).status_code == 403
        assert (await client.delete(f"/v1/admin/keys/{key}")).json()["revoked_at"]
        for _ in range(50):  # each process knows a key for some seconds
            if (refused := await client.get("/v1/me", headers=hers)).status_code == 401:
                break
            await asyncio.sleep(0.2)
        assert refused.status_code == 401


@pytest.mark.parametrize("days", [0, 2])
async def test_prompts_are_kept_where_the_operator_wants_it(serve: Serve, days: float) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        says("It is 42.", to="completion"),
    )
    async with chatting(serve, model, keep_prompts=days) as client:
        asked = {"prompt": "Compute 6*7", "room": "stepgate"}
        run = (await client.post("/v1/agent", json=asked)).json()["metadata"]["run_id"]
        kept = (await client.get(f"/v1/runs/{run}/prompts")).json()
        assert kept["days"] == days
        if not days:
            assert kept["data"] == []
            return
        assert [one["purpose"] for one in kept["data"]] == ["planner", "completion"]
        assert kept["data"][1]["reply"] == "It is 42."
        assert "Compute 6*7" in json.dumps(kept["data"][0]["messages"])
        made = {"owner": "eve", "name": "k", "scopes": ["agent"]}
        key = (await client.post("/v1/admin/keys", json=made)).json()["text"]
        refused = await client.get(f"/v1/runs/{run}/prompts", headers={"authorization": f"Bearer {key}"})
        assert refused.status_code == 404
