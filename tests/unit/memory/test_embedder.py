"""The quality of the local embedder, and the HTTP behaviour of the endpoint's client."""

import asyncio
import contextlib
import json
import subprocess
import sys

import httpx
import pytest
import respx

from agent.core.errors import EmbedderError
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import MAX_BATCH, LocalEmbedder
from agent.llm.embedder.http import HttpEmbedder

URL = "http://embedder.test/v1"
FACTS = (
    "My dog is called Fido and he is a golden retriever.",
    "I live in Gothenburg, Sweden.",
    "The project deadline is 15 March.",
    "We use PostgreSQL 15 in production.",
    "I am allergic to peanuts.",
    "The client ACME pays within 30 days.",
    "My daughter's birthday is on June 3rd.",
    "Min katt heter Missan.",
    "The weekly meeting is on Tuesdays at 10.",
)


def cosine(one: str, other: str) -> float:
    local = LocalEmbedder()
    return sum(a * b for a, b in zip(local.compute_vector(one), local.compute_vector(other), strict=True))


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("what's the name of my pet dog", 0),
        ("Where do I live?", 1),
        ("when must the project be finished", 2),
        ("which database do we run in production?", 3),
        ("can I eat peanuts", 4),
        ("payment terms of ACME", 5),
        ("When is my daughter's birthday?", 6),
        ("Vad heter min katt?", 7),
        ("when do we meet every week? meeting", 8),
    ],
)
def test_a_paraphrase_is_nearest_to_its_fact(question: str, fact: int) -> None:
    assert max(range(len(FACTS)), key=lambda number: cosine(question, FACTS[number])) == fact


@pytest.mark.row("S001-09")
def test_the_same_text_gives_the_same_vector_in_every_process() -> None:
    code = (
        "from agent.llm.embedder import LocalEmbedder; import json; "
        "print(json.dumps(LocalEmbedder().compute_vector('Åsa says hi')))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert tuple(json.loads(other.stdout)) == LocalEmbedder().compute_vector("Åsa says hi")


@pytest.mark.parametrize("text", ["", "   ", "!?", "\ud800", "x" * 100_000])
def test_odd_texts_have_a_vector(text: str) -> None:
    vector = LocalEmbedder().compute_vector(text)
    assert len(vector) == LocalEmbedder.space.dimension
    assert sum(number * number for number in vector) == pytest.approx(1.0 if text.startswith("x") else 0.0)


def vectors(request: httpx.Request) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    data = [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(texts)]
    return httpx.Response(200, json={"model": "m-1", "data": data[::-1]})


@respx.mock
async def test_texts_go_out_in_one_call_and_come_back_in_order() -> None:
    route = respx.post(f"{URL}/embeddings").mock(side_effect=vectors)
    embedder = HttpEmbedder(URL, "m-1", "key-1")
    made = await embedder.embed(["a", "bb", ""])
    assert made.vectors == ((1.0, 1.0), (2.0, 1.0), (1.0, 1.0))
    assert made.space == VectorSpace("m-1", 2)
    assert route.call_count == 1
    assert route.calls[0].request.headers["authorization"] == "Bearer key-1"
    await embedder.embed(["x"] * (MAX_BATCH + 1))
    assert route.call_count == 3
    await embedder.aclose()


@respx.mock
async def test_without_a_model_the_endpoint_says_which_it_is() -> None:
    respx.post(f"{URL}/embeddings").mock(side_effect=vectors)
    embedder = HttpEmbedder(URL)
    assert (await embedder.embed(["a"])).space.embedder == "m-1"
    await embedder.aclose()


@pytest.mark.parametrize(
    ("answer", "said", "calls"),
    [
        (httpx.Response(500, json={"error": {"message": "no memory left"}}), "500: no memory left", 4),
        (httpx.Response(401, json={"error": {"message": "no key"}}), "401: no key", 1),
        (httpx.Response(503, headers={"retry-after": "600"}, json={"error": "resting"}), "503: resting", 1),
        (httpx.Response(200, text="<html>"), "no embeddings", 1),
        (httpx.Response(200, json={"data": []}), "0 vectors for 1 texts", 1),
        (httpx.Response(200, json={"data": [{"index": 0, "embedding": []}]}), "unequal length", 1),
        (httpx.Response(200, json={"data": [{"index": 0, "embedding": ["x"]}]}), "no embeddings", 1),
        (httpx.Response(200, text='{"data": [{"index": 0, "embedding": [NaN]}]}'), "values that are not numbers", 1),
        (httpx.Response(200, text="[" * 100_000), "no embeddings", 1),
        (httpx.ConnectError("refused"), "cannot be reached", 4),
        (httpx.ReadTimeout("slow"), "returned no vectors within", 1),
    ],
)
@respx.mock
async def test_every_failure_is_an_embedder_error_and_only_what_may_pass_is_tried_again(
    answer: httpx.Response | Exception, said: str, calls: int
) -> None:
    route = respx.post(f"{URL}/embeddings")
    route.mock(side_effect=answer) if isinstance(answer, Exception) else route.mock(return_value=answer)
    embedder = HttpEmbedder(URL, sleep=RecordedSleep())
    for _ in range(2):
        with pytest.raises(EmbedderError, match=said):
            await embedder.embed(["a"])
    assert route.call_count == calls, "an endpoint that failed is left alone for a while"
    await embedder.aclose()


class RecordedSleep:
    """Returns at once and records the requested durations."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@respx.mock
async def test_a_limit_is_waited_for_as_the_endpoint_asks() -> None:
    limited = httpx.Response(429, headers={"retry-after": "3"}, json={"error": "slow down"})
    route = respx.post(f"{URL}/embeddings")
    route.side_effect = [limited, limited, vectors(httpx.Request("POST", URL, content=json.dumps({"input": ["a"]})))]
    naps = RecordedSleep()
    embedder = HttpEmbedder(URL, "m", sleep=naps)
    assert (await embedder.embed(["a"])).vectors == ((1.0, 1.0),)
    assert naps.taken == [3.0, 3.0]
    await embedder.aclose()


@respx.mock
async def test_an_endpoint_that_takes_fewer_texts_gets_fewer() -> None:
    sizes: list[int] = []

    def picky(request: httpx.Request) -> httpx.Response:
        sizes.append(len(json.loads(request.content)["input"]))
        if sizes[-1] > 32:
            return httpx.Response(422, json={"message": "batch size 128 > maximum allowed batch size 32"})
        return vectors(request)

    respx.post(f"{URL}/embeddings").mock(side_effect=picky)
    embedder = HttpEmbedder(URL, "m", sleep=RecordedSleep())
    made = await embedder.embed(["x" * (n + 1) for n in range(200)])
    assert [vector[0] for vector in made.vectors] == [float(n + 1) for n in range(200)]
    assert sizes == [128, 64, 32, 32, 32, 32, 32, 32, 8]
    sizes.clear()
    await embedder.embed(["x"] * 64)
    assert sizes == [32, 32], "the size that was taken is remembered"
    await embedder.aclose()


@respx.mock
async def test_another_dimension_in_the_middle_is_refused() -> None:
    def changing(request: httpx.Request) -> httpx.Response:
        texts = json.loads(request.content)["input"]
        data = [{"index": at, "embedding": [1.0] * (2 if len(texts) > 1 else 3)} for at in range(len(texts))]
        return httpx.Response(200, json={"model": "m", "data": data})

    respx.post(f"{URL}/embeddings").mock(side_effect=changing)
    embedder = HttpEmbedder(URL)
    with pytest.raises(EmbedderError, match="changed its model between two calls"):
        await embedder.embed(["x"] * (MAX_BATCH + 1))
    await embedder.aclose()


async def test_an_endpoint_that_drips_is_left_after_its_time() -> None:
    """Each byte arrives in time, the whole reply never does."""
    held = asyncio.Event()
    left = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while not held.is_set():
            writer.write(b" ")
            try:
                await writer.drain()
                await asyncio.wait_for(held.wait(), 0.02)
            except TimeoutError:
                continue
            except ConnectionError:
                break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    embedder = HttpEmbedder(f"http://{host}:{port}/v1", timeout_s=0.3)
    with pytest.raises(EmbedderError, match=r"within 0\.3 s"):
        await embedder.embed(["a"])
    held.set()
    await embedder.aclose()
    await asyncio.wait_for(left.wait(), 30)
    server.close()
    await server.wait_closed()
