"""Embeddings through LiteLLM's SDK, spoken over a real connection."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent.core.errors import EmbedderError
from agent.core.settings import Settings
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import MAX_BATCH, LiteLLMEmbedder
from gateway.bootstrap_memory import build_embedder


class Provider(ThreadingHTTPServer):
    """An OpenAI-style provider; the first of `refusals` is its next answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Door)
        self.refusals: list[int] = []
        self.batches: list[int] = []
        self.keys: set[str | None] = set()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Door(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.keys.add(self.headers["authorization"])
        if self.server.refusals:
            self._answer(self.server.refusals.pop(0), {"error": {"message": "not now"}})
            return
        self.server.batches.append(len(body["input"]))
        data = [
            {"index": n, "object": "embedding", "embedding": [float(len(t)), 1]} for n, t in enumerate(body["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self._answer(200, {"object": "list", "model": body["model"], "data": data, "usage": usage})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
        """Quiet."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def nap(seconds: float) -> None:
    """Waits are for providers."""
    assert 0 <= seconds <= 20


def embedder(provider: Provider) -> LiteLLMEmbedder:
    """An embedder that speaks to it."""
    return LiteLLMEmbedder("openai/tiny", "key-1", timeout_s=20, base_url=provider.url, sleep=nap)


async def test_texts_go_out_in_batches_and_come_back_in_order(provider: Provider) -> None:
    made = await embedder(provider).embed(["x" * (n + 1) for n in range(MAX_BATCH + 2)])
    assert [vector[0] for vector in made.vectors] == [float(n + 1) for n in range(MAX_BATCH + 2)]
    assert made.space == VectorSpace("openai/tiny", 2)
    assert provider.batches == [MAX_BATCH, 2]
    assert provider.keys == {"Bearer key-1"}


async def test_what_may_pass_is_tried_again_and_what_may_not_is_told(provider: Provider) -> None:
    provider.refusals = [429, 503]
    assert (await embedder(provider).embed(["abc"])).vectors == ((3.0, 1.0),)
    provider.refusals = [401] * 4
    with pytest.raises(EmbedderError, match=r"openai/tiny failed: .*not now"):
        await embedder(provider).embed(["abc"])
    assert len(provider.refusals) == 3


def test_a_model_without_a_url_is_litellm_s_which_is_not_imported_yet() -> None:
    assert isinstance(build_embedder(Settings(_env_file=None, embedder_model="cohere/embed-v4")), LiteLLMEmbedder)
    code = (
        "import sys; from agent.core.settings import Settings; "
        "from gateway.bootstrap_memory import build_embedder; "
        "build_embedder(Settings(_env_file=None, embedder_model='a/b')); print('litellm' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
