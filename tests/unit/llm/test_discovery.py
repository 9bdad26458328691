"""Models on this machine are found by listing only, and only chat models of programs that are no Stepgate."""

import asyncio
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from agent.core import containers
from agent.llm.discovery import UsualPort, discover_endpoints, find_obstacle
from agent.llm.http import HttpModelClient
from agent.llm.listed_models import find_fingerprint, read_listed_models
from tests.support.model_endpoint import list_of, model_endpoint

LLAMA_CPP: dict[str, Any] = {
    "models": [{"model": "/models/tiny-q4.gguf", "capabilities": ["completion"]}],
    "data": [{
        "id": "/models/tiny-q4.gguf", "owned_by": "llamacpp", "created": 1,
        "meta": {"n_ctx": 4096, "size": 1_000, "n_params": 5},
    }],
}  # fmt: skip


async def test_each_program_is_found_with_its_models_and_nothing_but_lists_is_requested() -> None:
    tags = {"models": [{"name": "llama3.2:3b", "size": 2_000, "details": {"family": "llama"}}]}
    async with (
        model_endpoint(list_of("llama3.2:3b", owned_by="library"), tags=tags) as ollama,
        model_endpoint(LLAMA_CPP) as llama,
        model_endpoint(list_of("acme/large", owned_by="vllm", max_model_len=32_768)) as vllm,
    ):
        ports = [UsualPort("Ollama", ollama.port), UsualPort("Jan", llama.port), UsualPort("vLLM", vllm.port)]
        found = await discover_endpoints(ports, seconds=5)
    assert [(one.product, one.base_url) for one in found] == [
        ("Ollama", ollama.url),
        ("llama.cpp", llama.url),  # by what it says of itself, not by the port
        ("vLLM", vllm.url),
    ]
    assert [(one.models[0].name, one.models[0].size_bytes, one.models[0].context_tokens) for one in found] == [
        ("llama3.2:3b", 2_000, None),
        ("/models/tiny-q4.gguf", 1_000, 4096),
        ("acme/large", None, 32_768),
    ]
    assert found[1].models[0].short_name == "tiny-q4"
    assert (ollama.paths, llama.paths) == (["/v1/models", "/api/tags"], ["/v1/models"])


@pytest.mark.parametrize(
    "listing",
    [
        [{"id": "acme/large", "type": "chat"}],
        {"models": [{"name": "acme/large"}]},
        {"data": [{"model": "acme/large"}]},
    ],
)
async def test_a_list_of_models_is_read_in_whichever_form_it_has(listing: object) -> None:
    async with model_endpoint(listing) as endpoint:
        client = HttpModelClient(endpoint.url)
        try:
            assert await client.list_models() == ["acme/large"]
        finally:
            await client.aclose()
        (found,) = await discover_endpoints([UsualPort("vLLM", endpoint.port)], seconds=5)
        assert [one.name for one in found.models] == ["acme/large"]


async def test_a_stepgate_an_empty_list_and_other_programs_are_not_offered() -> None:
    room = {"id": "chat", "object": "model", "owned_by": "ann", "suggestions": []}
    async with (
        model_endpoint({"object": "list", "data": [room]}) as stepgate,
        model_endpoint(list_of()) as empty,
        model_endpoint({"status": "I am a web application"}) as other,
        model_endpoint(list_of("bge-m3", "nomic-embed-text")) as embeddings,
    ):
        ports = [UsualPort("vLLM", one.port) for one in (stepgate, empty, other, embeddings)]
        assert await discover_endpoints(ports, seconds=5) == ()


async def test_the_search_is_bounded_and_skips_the_gateways_own_port() -> None:
    async with model_endpoint(list_of("slow"), delay_s=3) as slow, model_endpoint(list_of("own")) as own:
        started = monotonic()
        found = await discover_endpoints(
            [UsualPort("Jan", slow.port), UsualPort("vLLM", own.port)], skipped_ports=[own.port], seconds=0.3
        )
        assert monotonic() - started < 2
    assert (found, own.paths) == ((), [])


async def test_a_port_that_accepts_and_says_nothing_or_says_nonsense_is_left_out() -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await discover_endpoints([UsualPort("Jan", port)], seconds=2) == ()


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    async with model_endpoint(list_of("elsewhere")) as other:

        async def redirect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {other.url}/models\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert await discover_endpoints([UsualPort("Jan", port)], seconds=2) == ()
    assert other.paths == []


@pytest.mark.parametrize(
    ("entry", "chats"),
    [
        ({"id": "a", "type": "embeddings"}, False),  # LM Studio
        ({"id": "a", "type": "vlm"}, True),
        ({"id": "a", "capabilities": ["embedding"]}, False),
        ({"id": "text-embedding-nomic", "capabilities": ["completion"]}, True),  # what is declared counts
        ({"id": "a", "architecture": {"output_modalities": ["audio"]}}, False),
        ({"id": "/m/bge-reranker-v2.gguf"}, False),
        ({"id": "whisper-large-v3"}, False),
        ({"id": "Qwen2.5-1.5B-Instruct"}, True),
        ({"id": "gemma-3-embedded-systems-tutor"}, True),
        ({"id": 7}, False),
        ({"id": "ada-002", "capabilities": {"chat_completion": False, "embeddings": True}}, False),
        ({"id": "mistral-small", "capabilities": {"completion_chat": True, "vision": False}}, True),
        ({"id": "small-3", "capabilities": {"type": "embeddings", "limits": {}}}, False),
        ({"id": "gpt", "capabilities": {"type": "chat", "limits": {}}}, True),
        ({"id": "acme", "capabilities": {"streaming": True}}, True),
    ],
)
def test_only_chat_models_are_listed(entry: dict[str, Any], chats: bool) -> None:
    assert bool(read_listed_models({"data": [entry]}, {})) == chats


def test_a_fingerprint_changes_with_the_model_and_not_with_the_time() -> None:
    entry = LLAMA_CPP["data"][0]
    later = {**LLAMA_CPP, "data": [{**entry, "created": 2}]}
    other = {**LLAMA_CPP, "data": [{**entry, "meta": {**entry["meta"], "size": 2_000}}]}
    first = find_fingerprint(LLAMA_CPP, entry["id"])
    assert first == find_fingerprint(later, entry["id"]) != find_fingerprint(other, entry["id"])


def test_searching_is_off_where_it_would_be_of_no_use_or_tell_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "CONTAINER_FILES", (tmp_path / "dockerenv",))
    assert find_obstacle("auto", is_loopback=True, environment={}) is None
    assert "AGENT_DISCOVER=off" in str(find_obstacle("off", is_loopback=True, environment={}))
    assert "beyond" in str(find_obstacle("auto", is_loopback=False, environment={}))
    assert "container" in str(find_obstacle("auto", is_loopback=True, environment={"KUBERNETES_SERVICE_HOST": "1"}))
    (tmp_path / "dockerenv").touch()
    for is_loopback in (True, False):  # an image's gateway always listens beyond itself
        reason = str(find_obstacle("auto", is_loopback=is_loopback, environment={}))
        assert "container" in reason
        assert "http://host.docker.internal:11434/v1" in reason
        assert "AGENT_DISCOVER=on" not in reason, "that would search the container"
    assert find_obstacle("on", is_loopback=False, environment={"container": "podman"}) is None
