"""Conversations about pipelines over HTTP with a scripted model: delegated, proposed, validated, approved, applied."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.features.documents.engine.ingest.templates import from_template
from tests.integration.conftest import Serve
from tests.support.script import Call, Rule, Script, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.talks import API, Talk, kinds, papers, read_answer, talk

INDEX = "Help me index these research papers"
REPORTS = from_template("reports").model_dump(mode="json")


@contextlib.asynccontextmanager
async def client_of(serve: Serve, model: Script | None = None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(model or Script(), **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


def calls(tool: str, /, **args: Any) -> Rule:
    """The next turn of the skill asks for this call."""
    return says(to="skill", times=1, calls=(Call(tool, args, id=f"call_{tool}"),))


def builds(source_id: str) -> list[Rule]:
    """A model that goes the whole way up to the question whether to apply."""
    analysis = {
        "summary": "Academic papers on kelp.",
        "uncertainties": [{"severity": "notable", "message": "all alike"}],
    }
    report = {"summary": "All is read.", "success_rate": 1.0}
    return [
        says(json.dumps(analysis), to="subagent", about="Analyse the source", times=1),
        says(json.dumps(report), to="subagent", about="Validate this pipeline", times=1),
        calls("spawn_source_analyzer", source_id=source_id, user_intent=INDEX),
        calls("build_pipeline", template="reports"),
        calls("spawn_pipeline_validator", pipeline=REPORTS, source_id=source_id),
        says("I propose the template reports. Shall I apply it?", to="skill", times=1),
    ]


async def start_conversation(
    client: httpx.AsyncClient, model_server: ScriptedServer, folder: Path, *rules: Rule
) -> Talk:
    """A conversation whose model goes the whole way, then follows `rules`."""
    mine = await talk(client, folder)
    model_server.load(script(*builds(mine.source_id), *rules))
    return mine


@pytest.mark.row("S000-04", "S000-06", "S000-15", "S000-20", "S000-24", "S000-26", "S000-27", "S000-29", "S000-57")
async def test_the_whole_way_with_a_model_and_a_person_in_control(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data")
    async with client_of(serve) as client:
        done = says("It is being indexed.", to="skill", times=1)
        mine = await start_conversation(
            client, model_server, folder, calls("apply_pipeline", collection_name="kelp"), done
        )
        found = await mine.say(INDEX)
        assert kinds(found) == {"text", "tool", "subagent", "uncertainty", "pipeline", "done"}
        analyzer, validator = [one["body"] for one in model_server.requests() if one["purpose"] == "subagent"]
        assert "You analyse a source of documents" in analyzer["messages"][0]["content"], "its own prompt"
        assert INDEX in analyzer["messages"][1]["content"], "what the user wants of the source"
        assert mine.source_id in analyzer["messages"][1]["content"]
        assert "You test a pipeline on sample files" in validator["messages"][0]["content"]
        offered = [{tool["function"]["name"] for tool in body.get("tools", ())} for body in (analyzer, validator)]
        assert {"enumerate_files", "try_parser"} <= offered[0]
        assert {"run_dry_run", "inspect_chunks"} <= offered[1]
        assert not offered[0] & offered[1], "each has tools of its own"
        assert read_answer(found) == "I propose the template reports. Shall I apply it?"
        known = await mine.look()
        assert known["source_analysis"]["total_files"] == 6, "counted, not said"
        assert known["current_pipeline"] == REPORTS
        assert known["validation"]["assessment"] == "ready"
        assert "all alike" in [one["message"] for one in known["uncertainties"]]
        assert {message["role"] for message in known["messages"]} == {"user", "tool", "subagent", "assistant"}
        assert known["usage"]["prompt_tokens"] == 60, "four turns of the skill, one of each sub-agent"
        asked = await mine.say("Apply it as kelp")
        assert "Approval needed" in read_answer(asked)
        told = await mine.say("yes")
        assert read_answer(told) == "It is being indexed."
        known = await mine.look()
        assert (known["status"], known["collection_id"], known["applied"]["force"]) == ("applied", "kelp", False)
        job = (await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})).json()
        assert (job["status"], job["report"]["read"]) == ("done", 6)
        listed = (await client.get(API)).json()
        assert (listed["data"][0]["id"], listed["usage"]["total_tokens"]) == (mine.id, known["usage"]["total_tokens"])


@pytest.mark.row("S000-05", "S000-10")
async def test_what_is_over_takes_no_more(serve: Serve, model_server: ScriptedServer, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await start_conversation(client, model_server, folder)
        await mine.say(INDEX)
        assert (await mine.apply("kelp")).status_code == 200
        assert (await mine.apply("kelp")).status_code == 200, "the same again changes nothing"
        refused = [
            await mine.ask("and now?"),
            await mine.apply("other"),
            await client.post(f"{API}/{mine.id}/abandon"),
        ]
        for response in refused:
            assert response.status_code == 400
            assert response.json()["error"]["error_code"] == "ERR_CONVERSATION_NOT_ACTIVE"
        second = await talk(client, folder)
        assert (await client.post(f"{API}/{second.id}/abandon")).json()["status"] == "abandoned"
        assert (await second.ask("hello")).status_code == 400
        assert (await second.apply("x")).status_code == 400
        taken = await start_conversation(client, model_server, folder)
        await taken.say(INDEX)
        assert (await taken.apply("kelp")).status_code == 409, "the name is taken"


@pytest.mark.row("S000-03", "S000-05")
async def test_unknown_things_are_not_found(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        assert (await client.post(API, json={"source_id": "src_0"})).status_code == 404
        assert (await client.get(f"{API}/conv_0")).status_code == 404
        assert (await client.post(f"{API}/conv_0/messages", json={"message": "x"})).status_code == 404
        assert (await client.post(f"{API}/conv_0/apply", json={"collection_name": "x"})).status_code == 404
        outside = await client.post("/v1/sources", json={"source_identifier": "/etc"})
        assert outside.status_code == 403


@pytest.mark.row("S000-28")
async def test_a_pipeline_that_cannot_be_is_refused_with_every_reason(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    looped = {"nodes": [*REPORTS["nodes"]], "edges": [*REPORTS["edges"], {"from_node": "index", "to_node": "source"}]}
    without = {"nodes": [n for n in REPORTS["nodes"] if n["kind"] != "parser"], "edges": []}
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        model_server.load(
            script(
                calls("build_pipeline", pipeline=looped),
                calls("build_pipeline", pipeline=without),
                says("It cannot be done.", to="skill"),
            )
        )
        found = await mine.say("Build me something odd")
        failed = [one["content"] for one in found if one["type"] == "tool" and one["status"] == "failed"]
        assert len(failed) == 2
        assert "cycle" in failed[0]
        assert "there is no parser" in failed[1]
        assert (await mine.look())["current_pipeline"] is None


@pytest.mark.row("S000-49", "S000-25")
async def test_a_simple_question_starts_no_sub_agent(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        model_server.load(
            script(
                calls("list_plugins", kind="chunker"),
                calls("get_plugin_details", name="structure"),
                calls("list_templates"),
                says("There are three chunkers.", to="skill"),
            )
        )
        found = await mine.say("What chunkers exist?")
        assert "subagent" not in kinds(found)
        told = {one["tool"]: one["content"] for one in found if one["type"] == "tool" and one["status"] == "done"}
        assert "sentence (chunker)" in told["list_plugins"]
        assert "reports" in told["list_templates"]
        assert (await mine.look())["source_analysis"] is None


@pytest.mark.row("S000-45", "S000-46", "S000-47")
@pytest.mark.parametrize(
    ("fault", "status", "requests"), [("status_429", 429, 3), ("status_500", 502, 3), ("hang", 502, 2)]
)
async def test_a_model_that_fails_is_told_as_it_is(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path, fault: str, status: int, requests: int
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, llm_timeout_s=0.3) as client:
        mine = await talk(client, folder)
        failing = says(to="skill", fault=fault, retry_after=0.01 if fault == "status_429" else None)
        model_server.load(script(failing))
        answer = await mine.ask(INDEX)
        assert answer.status_code == status, answer.text
        assert len(model_server.requests()) == requests
        model_server.load(script(failing))
        streamed = await mine.say(INDEX)
        assert [one["code"] for one in streamed if one["type"] == "error"] == [answer.json()["error"]["error_code"]]
        model_server.load(script(says("Back again.", to="skill")))
        assert read_answer(await mine.say("still there?")) == "Back again."


@pytest.mark.row("S000-46")
async def test_a_late_model_has_longer_the_second_time(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, llm_timeout_s=0.6) as client:
        mine = await talk(client, folder)
        model_server.load(script(says("Late.", to="skill", delay_s=0.8)))
        assert read_answer(await mine.say("hm?")) == "Late."
        assert len(model_server.requests()) == 2


@pytest.mark.row("S000-18")
async def test_two_clients_on_one_conversation(serve: Serve, model_server: ScriptedServer, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        model_server.load(script(says("Slowly.", to="skill", delay_s=1.0)))
        first, second = await asyncio.gather(mine.ask("one"), mine.ask("two"))
        assert sorted([first.status_code, second.status_code]) == [200, 409]
        late = first if first.status_code == 409 else second
        assert "being answered" in late.json()["error"]["message"]
        said_by = [message["role"] for message in (await mine.look())["messages"]]
        assert [role for role in said_by if role in ("user", "assistant")] == ["user", "assistant"]


@pytest.mark.row("S000-58")
async def test_a_user_who_sends_too_much_is_told_to_wait(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, conversation_messages_per_minute=2) as client:
        mine = await talk(client, folder)
        model_server.load(script(says("Yes.", to="skill")))
        assert [(await mine.ask("hm?")).status_code for _ in range(3)] == [200, 200, 429]
        refused = await mine.ask("hm?")
        assert 0 < int(refused.headers["retry-after"]) <= 60


@pytest.mark.row("S000-44")
async def test_calls_that_failed_or_were_refused_are_in_the_stream_and_in_the_history(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        wrong = (
            calls("web_fetch", url="https://example.org/"),
            calls("spawn_source_analyzer", source_id="src_nowhere", user_intent=INDEX),
            calls("build_pipeline", template="no such template"),
            says("I could do none of it.", to="skill", times=1),
        )
        model_server.load(script(*wrong))
        found = await mine.say(INDEX)
        known = await mine.look()
    ended = [(one["tool"], one["status"]) for one in found if one["type"] == "tool" and one["status"] != "started"]
    assert ended == [
        ("get_pipeline_state", "done"),
        ("web_fetch", "refused"),
        ("spawn_source_analyzer", "failed"),
        ("build_pipeline", "failed"),
    ]
    assert all(one["content"] for one in found if one["type"] == "tool" and one["status"] in ("failed", "refused"))
    assert not [one for one in found if one["type"] == "subagent"], "none was started"
    _, *kept = [one for one in known["messages"] if one["role"] == "tool"]
    assert [one["metadata"]["tool_name"] for one in kept] == ["web_fetch", "spawn_source_analyzer", "build_pipeline"]
    assert not any(one["metadata"]["success"] for one in kept)
    assert known["validation"] is None


@pytest.mark.row("S000-27")
async def test_an_answer_says_that_the_proposal_was_not_validated_whatever_its_model_says(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        claim = says("It was validated: all is read.", to="skill", times=1)
        model_server.load(script(calls("build_pipeline", template="documents"), claim))
        told = await mine.say(INDEX)
        known = await mine.look()
    assert known["validation"] is None
    answer = "".join(one["content"] for one in told if one["type"] == "text")
    assert answer == "It was validated: all is read.\n\nThe proposed pipeline was not validated yet."
    assert known["messages"][-1]["content"] == answer


@pytest.mark.row("S000-27", "S000-44")
async def test_an_answer_says_what_was_not_done_whatever_its_model_says(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)

        async def ask(*rules: Rule) -> str:
            model_server.load(script(*rules, says("Done: built, validated and applied.", to="skill", times=1)))
            answer: str = (await mine.ask(INDEX)).json()["response"]
            return answer.removeprefix("Done: built, validated and applied.").strip()

        apply = calls("apply_pipeline", collection_name="kelp")
        assert await ask(calls("build_pipeline", template="nope")) == "No pipeline was proposed yet."
        assert await ask(apply) == "No pipeline was proposed yet."
        assert await ask(calls("list_plugins")) == ""
        built = (calls("build_pipeline", template="reports"), calls("spawn_pipeline_validator", pipeline=REPORTS))
        report = says(json.dumps({"summary": "All is read."}), to="subagent", times=1)
        assert await ask(report, *built) == ""
        assert "Approval needed" in await ask(apply)
        refused = (await mine.ask("no")).json()["response"]
        assert refused == "Done: built, validated and applied.\n\nThe pipeline was not applied."
        assert (await mine.look())["status"] == "active"
