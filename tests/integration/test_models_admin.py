"""`/v1/admin/models` and `stepgate models`: what can be chosen is shown, tried and used without a restart."""

import asyncio
import base64
import json
import stat
import time
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.settings import Settings
from agent.llm import discovery
from agent.llm.discovery import UsualPort
from agent.storage.api_keys import KeyStore
from gateway import live_models
from gateway.bootstrap_database import build_statements, open_store
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.mcp_client import until_async
from tests.support.model_endpoint import list_of, model_endpoint
from tests.support.tiny_gguf import write_tiny_gguf

KEY = "sk-not-a-real-key-4711"
MODELS = "/v1/admin/models"


@pytest.fixture
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_models, "WATCH_SECONDS", 0.05)


async def ask(client: httpx.AsyncClient) -> dict[str, Any]:
    body = {"model": "chat", "messages": [{"role": "user", "content": "Tell me a story"}]}
    reply: dict[str, Any] = (await client.post("/v1/chat/completions", json=body)).json()
    return reply


async def test_a_found_model_is_offered_tried_saved_and_used(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with model_endpoint(list_of("llama3", owned_by="library"), answer=lambda _: "Once upon a time.") as ollama:
        monkeypatch.setattr(discovery, "USUAL_PORTS", (UsualPort("Ollama", ollama.port),))
        async with serve(None, discover="on") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            before = (await client.get(MODELS)).json()
            assert (before["is_configured"], before["configured"], before["not_searched"]) == (False, [], None)
            [found] = before["found"]
            assert found["offer"] == "Use llama3 from Ollama on this machine: stepgate models use llama3"
            assert set(ollama.paths) == {"/v1/models", "/api/tags"}, "nobody chose it: nothing but lists is requested"

            chosen = {"base_url": found["base_url"], "model": "llama3", "product": "Ollama"}
            tried = (await client.post(f"{MODELS}/test", json=chosen | {"model": None, "product": None})).json()
            assert "product" in tried["error"]["message"], "a trial has no product"
            tried = (await client.post(f"{MODELS}/test", json={"base_url": found["base_url"]})).json()
            assert (tried["ok"], tried["model"], tried["reply"]) == (True, "llama3", "Once upon a time.")

            saved = await client.post(MODELS, json=chosen)
            assert saved.status_code == 201, saved.text
            report = saved.json()
            [item] = report["configured"]
            assert (item["name"], item["state"], item["roles"], item["source"]) == (
                "ollama", "reachable", ["fast", "high"], "file",
            )  # fmt: skip
            assert report["found"] == [], "a configured endpoint is not offered again"
            assert (await ask(client))["choices"][0]["message"]["content"] == "Once upon a time."
            actions = [one["action"] for one in (await client.get("/v1/audit")).json()["data"]]
            assert "model.save" in actions

            removed = (await client.delete(f"{MODELS}/ollama")).json()
            assert (removed["is_configured"], removed["configured"]) == (False, [])
            assert (await client.delete(f"{MODELS}/ollama")).status_code == 404
        async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            report = (await client.get(MODELS)).json()
            assert (report["not_searched"], report["example_url"]) == (
                "AGENT_DISCOVER=off",
                "http://127.0.0.1:11434/v1",
            )


async def test_a_gateway_in_a_container_names_where_the_models_of_its_host_are(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("container", "docker")
    there = "http://host.docker.internal:11434/v1"
    options: dict[str, Any] = {"discover": "auto", "host": "0.0.0.0", "require_key": "never"}
    async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        report = (await client.get(MODELS)).json()
        assert (report["example_url"], there in report["not_searched"]) == (there, True)
        tried = (await client.post(f"{MODELS}/test", json={"base_url": "http://127.0.0.1:9/v1"})).json()
        assert not tried["ok"]
        assert "http://host.docker.internal:9/v1" in tried["reason"]
        asked = {"model": "chat", "messages": [{"role": "user", "content": "Tell me a story"}]}
        told = (await client.post("/v1/chat/completions", json=asked)).json()
        assert f" --at {there}`" in told["choices"][0]["message"]["content"]


async def test_another_model_of_the_same_program_is_offered_and_saved_beside_the_first(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with model_endpoint(list_of("llama3", "org/qwen3:4b"), answer=lambda _: "Once upon a time.") as ollama:
        monkeypatch.setattr(discovery, "USUAL_PORTS", (UsualPort("Ollama", ollama.port),))
        async with serve(None, discover="on") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            chosen = {"base_url": ollama.url, "model": "llama3", "product": "Ollama"}
            [offered] = (await client.post(MODELS, json=chosen)).json()["found"]
            assert [one["name"] for one in offered["models"]] == ["org/qwen3:4b"], "without the one that is in use"
            report = (await client.post(MODELS, json=chosen | {"model": "org/qwen3:4b", "roles": ["high"]})).json()
            assert report["found"] == []
            places = [(one["name"], one["model"], one["roles"]) for one in report["configured"]]
            assert places == [("ollama-qwen3-4b", "org/qwen3:4b", ["high"]), ("ollama", "llama3", ["fast", "high"])]
            again = (await client.post(MODELS, json=chosen)).json()["configured"]
            assert [one["name"] for one in again] == ["ollama", "ollama-qwen3-4b"], "its own entry, first again"
            cards = (await client.get("/v1/models")).json()["data"]
            assert {one["model"] for one in cards if one["room"] == "chat"} >= {"llama3@ollama"}

            for room in ("chat", "stepgate"):
                await client.post("/v1/agent", json={"prompt": "Tell me a story", "room": room})

            async def are_recorded() -> bool:
                return bool((await client.get("/v1/usage")).json()["total"]["runs"] == 2)

            await until_async(are_recorded)
            used = (await client.get("/v1/usage?by=model")).json()["data"]
            assert {one["model"] for one in used} == {"llama3@ollama"}, "one name, whatever a call was for"


def name_colour(body: dict[str, Any]) -> str:
    """What a model that sees says: the colour of the first dot of the picture, if there is one."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return "ready"
    png = base64.b64decode(content[1]["image_url"]["url"].partition(",")[2])
    if b"IDAT" not in png:
        return "A dot."
    begin = png.index(b"IDAT") + 4
    red, _, blue = zlib.decompressobj().decompress(png[begin:])[1:4]
    return "Red." if red > blue else "It is blue."


async def test_a_model_that_sees_is_sent_pictures_and_one_that_guesses_is_not(serve: Serve) -> None:
    picture = {"prompt": "What is this?", "images": ["data:image/png;base64,iVBORw0KGgo="], "room": "chat"}
    async with (
        model_endpoint(list_of("eyes"), answer=name_colour) as seeing,
        model_endpoint(list_of("blind"), answer=lambda body: "red") as blind,
        serve(None) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        for endpoint, model, sees in ((seeing, "eyes", True), (blind, "blind", False)):
            saved = await client.post(MODELS, json={"base_url": endpoint.url, "model": model, "name": model})
            assert saved.json()["configured"][0]["vision"] == sees
            cards = {one["id"]: one["vision"] for one in (await client.get("/v1/models")).json()["data"]}
            assert (cards["chat"], cards["stepgate"]) == (sees, sees)
            assert (await client.post("/v1/agent", json=picture)).status_code == (200 if sees else 400)
        assert (cards["chat@eyes@eyes"], cards["chat@blind@blind"]) == (True, False)
        chosen = await client.post("/v1/agent", json=picture | {"room": "chat@eyes@eyes"})
        assert chosen.status_code == 200, chosen.text


async def test_a_key_is_kept_apart_sent_to_its_address_only_and_never_shown(serve: Serve, tmp_path: Path) -> None:
    async with (
        model_endpoint(list_of("large"), key=KEY, answer=lambda _: f"My key is {KEY}.") as hosted,
        model_endpoint(list_of("large"), answer=lambda _: "hello") as other,
        serve(None) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        refused = await client.post(MODELS, json={"base_url": hosted.url, "model": "large", "api_key": KEY + "x"})
        assert refused.status_code == 400
        assert refused.json()["error"]["error_code"] == "ERR_VALIDATION"
        assert KEY not in refused.text, "the provider repeats the key that it refuses"
        assert not (tmp_path / "data/models.yaml").exists(), "nothing is saved"

        body = {"name": "hosted", "base_url": hosted.url, "model": "large", "api_key": KEY}
        saved = await client.post(MODELS, json=body)
        assert (saved.status_code, saved.json()["configured"][0]["has_key"]) == (201, True), saved.text
        credentials = tmp_path / "data/credentials.json"
        assert stat.S_IMODE(credentials.stat().st_mode) == 0o600
        assert json.loads(credentials.read_text())["model-hosted"]["key"] == KEY
        assert KEY not in (tmp_path / "data/models.yaml").read_text() + saved.text
        assert KEY not in (await ask(client))["choices"][0]["message"]["content"], "an answer never shows it"

        # Another address under the same name does not get the stored key.
        await client.post(f"{MODELS}/test", json={"name": "hosted", "base_url": other.url})
        assert not any("Authorization" in headers for headers in other.headers)
        again = (await client.post(f"{MODELS}/test", json={"name": "hosted", "base_url": hosted.url})).json()
        assert again["ok"]

        await client.delete(f"{MODELS}/hosted")
        assert json.loads(credentials.read_text()) == {}


async def test_the_environment_wins_and_what_is_down_says_why(serve: Serve, tmp_path: Path) -> None:
    async with model_endpoint(list_of("env-model")) as endpoint:
        data = tmp_path / "data"
        data.mkdir()
        (data / "models.yaml").write_text("models: [{name: old, model: m, base_url: 'http://127.0.0.1:9/v1'}]\n")
        async with (
            serve(None, llm_base_url=endpoint.url) as url,
            httpx.AsyncClient(base_url=url, timeout=30) as client,
        ):
            report = (await client.get(MODELS)).json()
            assert [(one["name"], one["model"], one["source"], one["state"]) for one in report["configured"]] == [
                ("default", "env-model", "environment", "reachable"),
                ("old", "m", "file", "unused"),
            ]
            assert "AGENT_LLM_BASE_URL" in report["configured"][1]["reason"]
        async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            [down] = (await client.get(MODELS)).json()["configured"]
            assert (down["state"], "cannot be reached" in down["reason"]) == ("unreachable", True)
            detail = (await client.get("/ready")).json()["components"]["models"]["detail"]
            assert "saved as 'old': `stepgate models list`" in detail
            assert "AGENT_LLM_BASE_URL" not in detail, "it was saved, not set"


@pytest.mark.parametrize("key", ["abc123", "hunter", "lm-studio"])
async def test_a_short_key_that_is_refused_is_not_shown(serve: Serve, key: str) -> None:
    async with (
        model_endpoint(list_of("large"), key=KEY) as hosted,
        serve(None) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        for path in ("", "/test"):
            body = {"base_url": hosted.url, "model": "large", "api_key": key}
            refused = await client.post(f"{MODELS}{path}", json=body)
            assert "[removed: API_KEY]" in refused.text
            assert key not in refused.text


async def test_a_file_that_was_changed_by_hand_is_used_and_a_broken_one_reported(
    serve: Serve, tmp_path: Path, quick_watch: None
) -> None:
    async with (
        model_endpoint(list_of("a"), answer=lambda body: f"I am {body['model']}.") as endpoint,
        serve(None) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        file = tmp_path / "data/models.yaml"

        async def write(text: str, expected: tuple[Any, str]) -> None:
            file.write_text(text)
            async with asyncio.timeout(10):
                while True:
                    report = (await client.get(MODELS)).json()
                    if (report["fast"], report["fault"][:20]) == (expected[0], expected[1][:20]):
                        return
                    await asyncio.sleep(0.05)

        entry = f"{{name: one, model: tiny, base_url: '{endpoint.url}'}}"
        await write(f"models: [{entry}]", ("tiny@one", ""))
        assert (await ask(client))["choices"][0]["message"]["content"] == "I am tiny."
        await write("models: [{name: one}]", ("tiny@one", f"{file}"))
        assert (await ask(client))["choices"][0]["message"]["content"] == "I am tiny.", "what worked goes on"
        await write("models: []", (None, ""))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"base_url": "file:///etc/passwd", "model": "m"}, "base_url"),
        ({"base_url": "http://", "model": "m"}, "base_url"),
        ({"base_url": "http://[127.0.0.1:9/v1", "model": "m"}, "base_url"),
        ({"base_url": "http://127.0.0.1:9/v1"}, "model"),
        ({"base_url": "http://127.0.0.1:9/v1", "model": "m", "roles": ["slow"]}, "roles"),
        ({"base_url": "http://127.0.0.1:9/v1", "model": "m", "name": "Not A Name"}, "name"),
        ({"base_url": "http://127.0.0.1:9/v1", "model": "a,b"}, "model"),
        ({"base_url": "http://127.0.0.1:9/v1", "model": "m", "roles": []}, "roles"),
    ],
)
async def test_a_faulty_choice_is_refused_and_names_the_field(serve: Serve, body: dict[str, Any], param: str) -> None:
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        refused = await client.post(MODELS, json=body)
    assert refused.status_code in (400, 422), refused.text
    assert param in refused.text


@pytest.mark.parametrize(
    "written", ["http://127.0.0.1:{port}", "localhost:{port}/", "127.0.0.1:{port}/v1/chat/completions"]
)
async def test_an_address_is_completed_and_saved_where_the_api_is(serve: Serve, written: str) -> None:
    async with (
        model_endpoint(list_of("nomic-embed-text", "tiny")) as endpoint,
        serve(None) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        address = written.format(port=endpoint.port)
        tried = (await client.post(f"{MODELS}/test", json={"base_url": address})).json()
        assert (tried["ok"], tried["model"]) == (True, "tiny"), tried
        saved = await client.post(MODELS, json={"base_url": address, "model": "tiny"})
        assert saved.status_code == 201, saved.text
        [item] = saved.json()["configured"]
    assert item["base_url"] == tried["base_url"]
    assert item["base_url"] in (f"http://127.0.0.1:{endpoint.port}/v1", f"http://localhost:{endpoint.port}/v1")


async def test_a_gateway_is_no_model_of_itself(serve: Serve) -> None:
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        refused = await client.post(MODELS, json={"base_url": f"{url}/v1", "model": "stepgate"})
        assert (refused.status_code, "is a Stepgate" in refused.text) == (400, True), refused.text
        assert (await client.get("/v1/me")).json()["model"] is None


async def test_only_a_key_of_the_operator_sees_and_changes_models(serve: Serve, tmp_path: Path) -> None:
    async with serve(None, require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        store = await open_store(Settings(_env_file=None, data_dir=tmp_path / "data"))
        keys = KeyStore(build_statements(store), time.time)
        _, chat = await keys.create("ann", "laptop", ["chat", "agent"])
        _, admin = await keys.create("ops", "root", ["admin"])
        await store.close()
        for method, path in (("GET", MODELS), ("POST", MODELS), ("POST", f"{MODELS}/test"), ("DELETE", f"{MODELS}/a")):
            json_body = {"base_url": "http://127.0.0.1:9/v1", "model": "m"} if method == "POST" else None
            answers = [
                await client.request(method, path, json=json_body, headers=headers)
                for headers in ({}, {"Authorization": f"Bearer {chat}"})
            ]
            assert [one.status_code for one in answers] == [401, 403], (method, path)
        seen = await client.get(MODELS, headers={"Authorization": f"Bearer {admin}"})
    assert seen.status_code == 200


async def test_a_file_is_tried_saved_served_and_unloaded_when_it_is_replaced(serve: Serve, tmp_path: Path) -> None:
    file = write_tiny_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "page.gguf").write_text("<!doctype html>")
    async with (
        model_endpoint(list_of("other"), answer=lambda _: "from the endpoint") as endpoint,
        serve(None, model_context=512) as url,
        httpx.AsyncClient(base_url=url, timeout=120) as client,
    ):
        refused = await client.post(MODELS, json={"file": str(tmp_path / "page.gguf")})
        assert (refused.status_code, "is not a GGUF file" in refused.text) == (400, True)
        both = await client.post(MODELS, json={"file": str(file), "base_url": endpoint.url})
        assert "a file has no base_url" in both.text
        tried = (await client.post(f"{MODELS}/test", json={"file": str(file)})).json()
        assert (tried["ok"], tried["model"]) == (True, "tiny"), tried
        saved = await client.post(MODELS, json={"file": str(file)})
        assert saved.status_code == 201, saved.text
        [item] = saved.json()["configured"]
        assert (item["file"], item["base_url"], item["product"]) == (str(file), None, "llama.cpp")
        body = {"model": "chat", "max_tokens": 4, "messages": [{"role": "user", "content": "Tell me a story"}]}
        reply = (await client.post("/v1/chat/completions", json=body)).json()
        assert reply["usage"]["completion_tokens"] == 4, reply

        await client.post(MODELS, json={"base_url": endpoint.url, "model": "other"})
        report = (await client.get(MODELS)).json()
        assert [one["model"] for one in report["configured"]] == ["other", "tiny"]
        assert (await ask(client))["choices"][0]["message"]["content"] == "from the endpoint"
        await client.delete(f"{MODELS}/tiny")
        assert (await ask(client))["choices"][0]["message"]["content"] == "from the endpoint"


async def test_the_command_line_uses_lists_and_removes(tmp_path: Path) -> None:
    async with model_endpoint(list_of("acme/tiny"), key=KEY) as endpoint:

        async def run(*words: str, **settings: str) -> tuple[int, str]:
            return await asyncio.to_thread(stepgate, tmp_path, "models", *words, **settings)

        code, wrong = await run("use", "acme/tiny", "--at", endpoint.url)
        assert (code, "nothing was saved" in wrong) == (1, True)
        (tmp_path / "key").write_text(KEY)
        (tmp_path / "key").chmod(0o600)
        code, out = await run("use", "acme/tiny", "--at", endpoint.url, "--key-file", str(tmp_path / "key"))
        assert code == 0, out
        assert "saved as 'at-127-0-0-1'" in out
        _, out = await run("list")
        assert "acme/tiny" in out
        assert "reachable" in out
        assert KEY not in out
        _, out = await run("list", "--json")
        assert json.loads(out)["configured"][0]["has_key"] is True
        for words, reason in (
            (("acme/tiny", "--at", endpoint.url, "--name", "Not A Name"), "stepgate: name: "),
            (("acme/tiny", "--at", "ftp://localhost:11434"), "must begin with http:// or https://"),
            (("./no-such-file.gguf",), "stepgate: there is no file ./no-such-file.gguf"),
        ):
            code, refused = await run("use", *words)
            assert (code in (1, 2), reason in refused) == (True, True), refused
        code, refused = await run("use", "acme/tiny")
        assert (code, "AGENT_DISCOVER=off" in refused) == (1, True)
        assert (await run("remove", "at-127-0-0-1"))[0] == 0
        assert (await run("remove", "at-127-0-0-1"))[0] == 1


async def test_doctor_does_not_call_a_provider_without_its_key_ok(tmp_path: Path) -> None:
    code, output = await asyncio.to_thread(stepgate, tmp_path, "doctor", model_fast="anthropic/claude-sonnet-4-5")
    assert code == 1
    assert "FAIL models: anthropic/claude-sonnet-4-5 has no key: set ANTHROPIC_API_KEY or AGENT_LLM_API_KEY" in output


async def test_a_model_whose_name_leads_to_no_provider_says_which_setting_is_missing(serve: Serve) -> None:
    async with serve(None, model_fast="llama9") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        failed = (await client.post("/v1/agent", json={"prompt": "Hello", "room": "chat"})).json()["error"]["message"]
        assert failed.startswith("the name llama9 does not say which provider has this model: set AGENT_LLM_BASE_URL")
        models = (await client.get("/ready")).json()["components"]["models"]
        assert (models["ok"], models["detail"]) == (False, failed), models
