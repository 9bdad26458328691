"""Citations over HTTP and MCP: shown, proved again, and no longer proved once something has changed."""

import json
import secrets
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from agent.core import events as ev
from agent.core.models import AgentRequest, Room, SourceCitation, TailorOutput
from agent.storage.journal_sqlite import open_sqlite
from gateway.features.documents.engine.grounded_answers.locate import make_citation_id
from tests.integration.conftest import Serve
from tests.integration.test_embedder_doors import write_handbook
from tests.support.documents import Words, pdf
from tests.support.processes import start
from tests.support.script import says, script

HANDBOOK = "# Handbook\n\n## Holidays\n\nEvery employee has 28 days of paid holiday a year.\n"
HOW_MANY = "How many days of paid holiday does an employee have?"
WHO_BOOKS = "Who books train tickets for the travel department?"
TWO_PAGES = pdf(
    [Words("Every employee has 28 days of paid holiday a year.")],
    [Words("Train tickets are booked by the travel department.", y=300)],
)


async def upload(client: httpx.AsyncClient, name: str, data: bytes | str) -> dict[str, Any]:
    body = data.encode() if isinstance(data, str) else data
    sent = await client.post("/v1/documents", files={"file": (name, body)}, data={"collection": "work"})
    assert sent.status_code == 201, sent.text
    entry: dict[str, Any] = sent.json()
    return entry


async def queried(client: httpx.AsyncClient, message: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/query", json={"user_message": message, "session_id": "s", "user_id": "u", **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def proof(client: httpx.AsyncClient, citation: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The verdict on a citation, and each check's result."""
    body = (await client.get(f"/v1/citations/{citation['citation_id']}/verify")).json()
    return body["proof"]["verdict"], {one["check"]: one["result"] for one in body["proof"]["checks"]}


@pytest.mark.row("S003-34", "S003-35")
async def test_a_message_is_answered_with_its_plan(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await upload(client, "handbook.md", HANDBOOK)
        answer = await queried(client, HOW_MANY, persona="Executive")
        assert sorted(answer) == ["agents", "execution_plan", "final_response", "processing_time_total_ms", "trace"]
        assert answer["final_response"]["content"] == (
            "- handbook.md: \u201cEvery employee has 28 days of paid holiday a year.\u201d [1]"
        )
        assert answer["final_response"]["tone_used"] == "Executive"
        assert answer["execution_plan"] == [
            {
                "step_id": 1, "description": "find what the documents say",
                "tool_call": f"search_knowledge(query={HOW_MANY!r})", "status": "completed",
            },
            {
                "step_id": 2, "description": "answer the user from the results", "tool_call": "completion",
                "status": "completed",
            },
        ]  # fmt: skip
        assert answer["processing_time_total_ms"] > 0
        nothing = await queried(client, "Who won the football world cup?")
        assert nothing["final_response"]["content"] == "The documents don't say."
        compared = await queried(client, "Compare paid holiday and pears")
        tools = [step["tool_call"].partition("(")[0] for step in compared["execution_plan"]]
        assert tools == ["search_knowledge", "search_knowledge", "completion"]
        for body in ({"user_message": "x"}, {"user_message": "", "session_id": "s", "user_id": "u"}):
            assert (await client.post("/query", json=body)).status_code == 400


async def test_a_citation_is_shown_and_proved_at_its_page(serve: Serve) -> None:
    async with (
        serve(public_url="https://stepgate.example.org", require_key="never") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        document = await upload(client, "rules.pdf", TWO_PAGES)
        citation = (await queried(client, WHO_BOOKS))["final_response"]["citations"][0]
        assert citation["text_snippet"] == "Train tickets are booked by the travel department."
        assert (citation["page"], citation["pages"]) == (2, [2])
        ((page, _, top, _, bottom),) = citation["boxes"]
        assert page == 2
        assert 280 < top < bottom < 320
        assert citation["url"] == (f"https://stepgate.example.org/v1/documents/{document['document_id']}/file#page=2")
        shown = (await client.get(f"/v1/citations/{citation['citation_id']}")).json()
        assert shown["citation"] == citation
        assert shown["question"] == WHO_BOOKS
        assert await proof(client, citation) == (
            "proven",
            dict.fromkeys(["document", "chunk", "quote", "span", "page", "boxes", "file"], "passed"),
        )
        opened = await client.get(f"/v1/documents/{document['document_id']}/file")
        assert opened.content == TWO_PAGES


async def test_what_has_changed_is_no_longer_proved(serve: Serve, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "handbook.md").write_text(HANDBOOK)
    environment = {"AGENT_DATA_DIR": str(tmp_path / "data"), "AGENT_SKILLS_DIRS": "none"}

    def ingest() -> None:
        command = [sys.executable, "-m", "gateway.cli", "ingest", str(docs), "--collection", "work"]
        process = start(command, environment=environment)
        assert process.wait(90) == 0, process.output

    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        ingest()
        (citation,) = (await queried(client, HOW_MANY))["final_response"]["citations"]
        assert (await proof(client, citation))[0] == "proven"
        (docs / "handbook.md").write_text(HANDBOOK.replace("28", "30"))
        verdict, results = await proof(client, citation)
        assert (verdict, results["file"], results["quote"]) == ("not_proven", "failed", "passed")
        (docs / "handbook.md").unlink()
        verdict, results = await proof(client, citation)
        assert (verdict, results["file"], results["quote"]) == ("proven_in_index", "not_checked", "passed")
        (docs / "handbook.md").write_text(HANDBOOK.replace("28", "30"))
        ingest()
        verdict, results = await proof(client, citation)
        assert (verdict, results["document"]) == ("not_proven", "failed")
        shown = await client.get(f"/v1/citations/{citation['citation_id']}")
        assert shown.json()["citation"]["text_snippet"] == "Every employee has 28 days of paid holiday a year."


async def test_there_is_no_citation_of_another_owner_and_none_that_was_never_made(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        theirs = await _a_run_of("somebody", tmp_path / "data" / "stepgate.db")
        mine = await _a_run_of("local", tmp_path / "data" / "stepgate.db")
        assert (await client.get(f"/v1/citations/{mine}")).status_code == 200
        assert await proof(client, {"citation_id": mine}) == (
            "cannot_be_checked",
            dict.fromkeys(["document", "chunk", "file"], "not_checked"),
        )
        for unknown in (theirs, mine[:-1] + ("0" if mine[-1] != "0" else "1"), "cit_x", "run_" + "0" * 32, "%2e%2e"):
            for path in ("", "/verify"):
                answer = await client.get(f"/v1/citations/{unknown}{path}")
                assert answer.status_code == 404, unknown
                assert answer.json()["error"]["error_code"] == "ERR_NOT_FOUND"


async def _a_run_of(owner: str, path: Path) -> str:
    """The citation of a run that this owner has in the store."""
    store = await open_sqlite(path)
    run_id = f"run_{secrets.token_hex(16)}"
    made = make_citation_id(run_id, "c", 0, 1)
    try:
        body = ev.RunCreated(request=AgentRequest(prompt="x"), room=Room(id="r"), owner=owner)
        claim = await store.journal.create_run(run_id, body, worker="w", lease_s=60)
        one = SourceCitation(source_id="d", chunk_id="c", text_snippet="x", citation_id=made, offset=0, end=1)
        answer = ev.AnswerFinished(text="x [1]", tailored=TailorOutput(content="x [1]", citations=(one,)))
        await store.journal.append(run_id, claim.epoch, [ev.EventDraft(answer), ev.EventDraft(ev.RunSucceeded())])
    finally:
        await store.close()
    return made


async def test_the_tool_answers_over_mcp_with_citations_that_can_be_proved(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await upload(client, "handbook.md", HANDBOOK)
        async with Client(f"{url}/mcp") as mcp:
            arguments = {"question": HOW_MANY, "persona": "Technical", "collection": "work"}
            result = await mcp.call_tool("answer_with_citations", arguments)
            output: Any = result.structured_content
            assert output["tone_used"] == "Technical"
            assert "28 days" in output["content"]
            assert (await proof(client, output["citations"][0]))[0] == "proven"
            as_json = await mcp.call_tool(
                "answer_with_citations", {"question": HOW_MANY, "formatting_instructions": "as JSON"}
            )
            told: Any = as_json.structured_content
            assert json.loads(told["content"])["statements"][0]["citations"] == [1]
            nothing: Any = (
                await mcp.call_tool("answer_with_citations", {"question": "Who is Zidane?"})
            ).structured_content
            assert nothing["content"] == "The documents don't say."
            assert nothing["citations"] == []
            wrong = await mcp.call_tool("answer_with_citations", {"question": "x", "collection": "nope"})
            assert wrong.is_error
            assert "there is no collection 'nope'" in str(wrong.content)


@pytest.mark.row("S003-30")
async def test_the_tool_called_by_name_answers_in_exactly_the_form_that_was_asked_for(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await upload(client, "handbook.md", HANDBOOK)

        async def answer(form: str) -> str:
            args = {"question": HOW_MANY, "formatting_instructions": form}
            body = {"metadata": {"tool_calls": [{"tool": "answer_with_citations", "args": args}]}}
            response: str = (await client.post("/v1/agent", json=body)).json()["response"]
            return response

        assert json.loads(await answer("as JSON"))["statements"][0]["citations"] == [1]
        assert {line[:2] for line in (await answer("as a bullet list")).splitlines()} == {"- "}
        assert {line[:1] for line in (await answer("as a table")).splitlines()} == {"|"}
        assert (await answer("")).endswith("\n\n[1] handbook.md")


async def test_open_webui_gets_name_page_quote_and_address(serve: Serve) -> None:
    model = script(says("Train tickets are booked by the travel department [1]. It is 99 [1].", to="completion"))
    async with (
        serve(model, public_url="http://gate", require_key="never") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        document = await upload(client, "rules.pdf", TWO_PAGES)
        body = {"model": "knowledge", "stream": True, "messages": [{"role": "user", "content": WHO_BOOKS}]}
        headers = {"X-OpenWebUI-Chat-Id": "c", "X-OpenWebUI-User-Id": "u"}
        answer = await client.post("/v1/chat/completions", json=body, headers=headers)
    frames = [
        json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ") and "[DONE]" not in line
    ]
    (source,) = [f["event"]["data"] for f in frames if f.get("event", {}).get("type") == "source"]
    address = f"http://gate/v1/documents/{document['document_id']}/file#page=2"
    assert source == {
        "source": {"name": "rules.pdf, page 2", "url": address},
        "document": ["Train tickets are booked by the travel department."],
        "metadata": [{"source": "source 1", "name": "rules.pdf, page 2"}],
    }
    text = "".join(f["choices"][0]["delta"].get("content") or "" for f in frames if f.get("choices"))
    assert text == (
        "Train tickets are booked by the travel department [1].\n\nWhat the documents do not support was left out (1)."
    )


@pytest.mark.row("S003-32")
async def test_an_answer_suggests_what_else_was_found(serve: Serve) -> None:
    handbook = write_handbook(Money="The boat is paid in crowns, and what a boat costs is said before it is rented. ")
    model = script(says("A boat is rented at the harbour for a day [1].", to="completion"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await upload(client, "club.md", handbook)
        final = (await queried(client, "Where is a boat rented for a day?"))["final_response"]
        nothing = (await queried(client, "Who won the football world cup?"))["final_response"]
    assert "harbour" in final["content"]
    assert final["follow_up_suggestions"] == ["What do the documents say about Money?"]
    assert nothing["follow_up_suggestions"] == []
