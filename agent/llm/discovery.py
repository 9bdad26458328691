"""Finds model endpoints on this machine: the usual loopback ports of programs that serve models.

Nothing is sent to them but a request for the list of their models, over the loopback interface, without following
redirects and without a proxy. A found endpoint is only offered; the operator chooses it.
"""

import asyncio
import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.core.containers import get_example_address, is_in_container
from agent.core.models import FrozenModel
from agent.llm.listed_models import ListedModel, is_stepgate, read_listed_models, read_listing, read_product, read_tags
from agent.llm.replies import get_object

if TYPE_CHECKING:
    import aiohttp

DISCOVERY_SECONDS = 0.3
"""Time limit of the whole search. A program on this machine lists its models within a few milliseconds."""
LOOPBACK = "127.0.0.1"
_MAX_BYTES = 2_000_000


class UsualPort(NamedTuple):
    """The port on which a program serves models unless it is configured otherwise."""

    product: str
    port: int


USUAL_PORTS = (
    UsualPort("Ollama", 11434),
    UsualPort("LM Studio", 1234),
    UsualPort("llama.cpp", 8080),
    UsualPort("vLLM", 8000),
    UsualPort("Jan", 1337),
)


class FoundEndpoint(FrozenModel):
    """An endpoint on this machine that serves chat models."""

    product: str
    base_url: str
    models: tuple[ListedModel, ...]


def find_obstacle(setting: str, *, is_loopback: bool, environment: Mapping[str, str]) -> str | None:
    """The reason why nothing is searched for; None if it may be. `setting` is the value of `AGENT_DISCOVER`.

    In a container 127.0.0.1 is the container itself, and a gateway that others reach must not reveal to them what runs
    here.
    """
    if setting == "off":
        return "AGENT_DISCOVER=off"
    if setting == "on":
        return None
    if is_in_container(environment):  # first: the gateway of an image always listens beyond itself
        example = get_example_address(environment)
        return f"the gateway runs in a container; connect a model by its address outside, such as {example}"
    if not is_loopback:
        return "the gateway listens beyond this machine (AGENT_DISCOVER=on searches all the same)"
    return None


async def discover_endpoints(
    ports: Sequence[UsualPort] | None = None, *, skipped_ports: Iterable[int] = (), seconds: float = DISCOVERY_SECONDS
) -> tuple[FoundEndpoint, ...]:
    """The endpoints on this machine that serve chat models, in the order of `ports`, by default the
    usual ones.

    `skipped_ports` are the gateway's own. Endpoints that do not answer within `seconds` in all are left out.
    """
    skipped = frozenset(skipped_ports)
    candidates = [usual for usual in (USUAL_PORTS if ports is None else ports) if usual.port not in skipped]
    deadline = asyncio.get_running_loop().time() + seconds
    are_open = await asyncio.gather(*(_is_open(usual.port, seconds) for usual in candidates))
    listening = [usual for usual, is_open in zip(candidates, are_open, strict=True) if is_open]
    if not listening:
        return ()
    # The library is loaded only where a program listens: it adds 0.2 s to the start, which is not time of the search.
    before = asyncio.get_running_loop().time()
    await asyncio.to_thread(importlib.import_module, "aiohttp")
    deadline += asyncio.get_running_loop().time() - before
    answers = await asyncio.gather(*(_ask(usual, deadline) for usual in listening))
    return tuple(endpoint for endpoint in answers if endpoint is not None and endpoint.models)


async def _is_open(port: int, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(LOOPBACK, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _ask(usual: UsualPort, deadline: float) -> FoundEndpoint | None:
    """The endpoint that listens on a port; None unless it lists models and is not a Stepgate."""
    import aiohttp  # noqa: PLC0415 - see `discover_endpoints`

    base = f"http://{LOOPBACK}:{usual.port}"
    try:
        async with asyncio.timeout_at(deadline), aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            listing = read_listing(await _get_json(session, f"{base}/v1/models"))
            if listing is None or is_stepgate(listing):
                return None
            product = read_product(listing) or usual.product
            tags = get_object(await _get_json(session, f"{base}/api/tags")) if product == "Ollama" else None
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
    models = read_listed_models(listing, read_tags(tags))
    return FoundEndpoint(product=product, base_url=f"{base}/v1", models=models)


async def _get_json(session: "aiohttp.ClientSession", url: str) -> object:
    """The JSON at an address; None if it is not served."""
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            return None
        body = await response.content.read(_MAX_BYTES)
        while len(body) < _MAX_BYTES and (piece := await response.content.read(_MAX_BYTES)):
            body += piece
    content: object = json.loads(body)
    return content
