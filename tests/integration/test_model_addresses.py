"""Addresses of models as people type them: a login is a secret, and what is wrong with an address is said."""

import base64
from pathlib import Path

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.model_endpoint import list_of, model_endpoint

MODELS = "/v1/admin/models"
PASSWORD = "s3cret-harbour"
LOGIN = f"Basic {base64.b64encode(f'bob:{PASSWORD}'.encode()).decode()}"


async def test_a_login_in_an_address_is_sent_kept_as_a_secret_and_never_shown(serve: Serve, tmp_path: Path) -> None:
    async with model_endpoint(list_of("small"), key=LOGIN, answer=lambda _: "ready") as endpoint:
        written = endpoint.url.replace("//", f"//bob:{PASSWORD}@")
        async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            tried = await client.post(f"{MODELS}/test", json={"base_url": written})
            assert tried.json()["ok"], tried.text
            saved = await client.post(MODELS, json={"base_url": written, "model": "small"})
            assert saved.status_code == 201, saved.text
            body = {"model": "chat", "messages": [{"role": "user", "content": "Say it"}]}
            reply = await client.post("/v1/chat/completions", json=body)
            assert reply.json()["choices"][0]["message"]["content"] == "ready", reply.text
            (shown,) = (await client.get(MODELS)).json()["configured"]
            assert (shown["base_url"], shown["has_key"], shown["state"]) == (endpoint.url, True, "reachable")
            down = await client.post(f"{MODELS}/test", json={"base_url": f"http://bob:{PASSWORD}@127.0.0.1:9/v1"})
            texts = [tried.text, saved.text, down.text, (await client.get("/v1/audit")).text]
    assert "cannot be reached" in down.json()["reason"]
    texts.append((tmp_path / "data" / "models.yaml").read_text())
    assert not any(PASSWORD in text or LOGIN[6:] in text for text in texts)


async def test_a_login_of_the_settings_is_sent_and_not_shown(serve: Serve) -> None:
    async with model_endpoint(list_of("small"), key=LOGIN) as endpoint:
        written = endpoint.url.replace("//", f"//bob:{PASSWORD}@")
        async with (
            serve(None, llm_base_url=written, model_fast="small") as url,
            httpx.AsyncClient(base_url=url, timeout=30) as client,
        ):
            report = await client.get(MODELS)
    assert report.json()["configured"][0]["state"] == "reachable"
    assert PASSWORD not in report.text


@pytest.mark.parametrize("path", ["/api", "/api/chat", "/openai", "/V1", ""])
async def test_an_address_copied_for_another_program_is_found(serve: Serve, path: str) -> None:
    async with (
        model_endpoint(list_of("small")) as endpoint,
        serve(None) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        tried = (await client.post(f"{MODELS}/test", json={"base_url": f"{endpoint.origin}{path}"})).json()
    assert (tried["ok"], tried["base_url"]) == (True, endpoint.url), tried


@pytest.mark.parametrize(
    ("body", "param", "told"),
    [
        ({"base_url": "localhost:99999"}, "base_url", "port"),
        ({"base_url": "http://localhost:abc/v1"}, "base_url", "port"),
        ({"base_url": "http://h/v1?api-version=1"}, "base_url", "`?`"),
        ({"base_url": "http://localhost:1", "api_key": "a\nb"}, "api_key", "U+000A"),
        ({"base_url": "http://localhost:1", "api_key": "export KEY=sk-1"}, "api_key", "U+0020"),
    ],
)
async def test_what_is_wrong_is_said_in_a_container_too(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, body: dict[str, str], param: str, told: str
) -> None:
    monkeypatch.setenv("container", "podman")
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        refused = await client.post(f"{MODELS}/test", json={**body, "model": "small"})
    assert refused.status_code == 422, refused.text
    assert refused.json()["error"]["message"].startswith(param)
    assert told in refused.json()["error"]["message"]


async def test_a_key_is_sent_without_the_word_before_it(serve: Serve) -> None:
    async with (
        model_endpoint(list_of("small"), key="sk-1") as endpoint,
        serve(None) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        tried = await client.post(f"{MODELS}/test", json={"base_url": endpoint.url, "api_key": "Bearer sk-1\n"})
    assert tried.json()["ok"], tried.text
