"""Who is measured: Stepgate, the floor and the peers. Each is a process that does the same work over the same wire."""

import json
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tests.bench import peer
from tests.support.processes import Process, start
from tests.support.script import Script
from tests.support.scripted_server import ScriptedServer

STEPGATE, FLOOR = "stepgate", "floor"
PYDANTIC_AI, LANGGRAPH, HAYSTACK, OPENAI_AGENTS = "pydantic-ai", "LangGraph", "Haystack", "openai-agents"
LITELLM = "LiteLLM"
FRAMEWORKS = (PYDANTIC_AI, LANGGRAPH, HAYSTACK, OPENAI_AGENTS)

ROOMS = {
    "turn": "name: a planned turn as in the default room\n",
    "fan": "name: every step is judged by the model\nsupervision: always\n",
    "chain": "name: a planned turn as in the default room\n",
    "stream": "name: the plain model\nplanning: false\nmemory: false\n",
}
"""Stepgate's rooms, one for each kind of work: the request's model names the work for everybody."""

START_SECONDS = 180.0
"""How long a contender may take to listen, also under valgrind."""

SKILL = "---\nname: investigate\ndescription: Investigates one matter and reports.\n---\nReport what you know of it.\n"


@dataclass(frozen=True, slots=True)
class Running:
    """A contender that answers at `url`."""

    name: str
    url: str
    process: Process

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid


class Command(NamedTuple):
    """How a process is started."""

    arguments: list[str]
    environment: Mapping[str, str] = {}
    url: str = ""
    """Where it will listen, if it does not say so itself."""


@dataclass(frozen=True, slots=True)
class Contender:
    """How one is started, on the model server's URL and a folder for what it keeps."""

    name: str
    command: Callable[[str, Path], Command]
    works: frozenset[str] = frozenset(ROOMS)
    """The kinds of work it can do."""
    version: str = ""
    requirements: Path | None = None
    """Those of a peer's environment."""
    module: str = "sys"
    """A module that can be imported where the peer is installed and works."""

    @property
    def missing(self) -> str | None:
        """Why it cannot be had here, or None. Installs a peer that was not installed yet."""
        return None if self.requirements is None else peer.missing(self.requirements, self.module)

    def start(self, upstream: str, folder: Path) -> Running:
        """A process of it that listens."""
        folder.mkdir(parents=True, exist_ok=True)
        command = self.command(upstream, folder)
        process = start(command.arguments, environment=command.environment, cold=True)
        if url := command.url:
            _wait_for_port(process, url)
        else:
            url = process.line_with("listens on ", START_SECONDS).rsplit(" ", 1)[1]
        return Running(self.name, url, process)

    @contextmanager
    def running(self, upstream: str, folder: Path) -> Iterator[Running]:
        """A process of it, for the length of the block."""
        one = self.start(upstream, folder)
        try:
            yield one
        finally:
            one.process.kill()


def build_gateway_command(
    module: str, upstream: str, folder: Path, further: Mapping[str, str] | None = None
) -> Command:
    """The command of a gateway with these rooms; `further` are settings without `AGENT_`."""
    rooms, skill = folder / "rooms", folder / "skills" / "investigate"
    for path in (rooms, skill):
        path.mkdir(parents=True, exist_ok=True)
    for name, text in ROOMS.items():
        (rooms / f"{name}.yaml").write_text(text, "utf-8")
    (skill / "SKILL.md").write_text(SKILL, "utf-8")
    settings = {
        "LLM_BASE_URL": upstream,
        "MODEL_FAST": "m",
        "DATA_DIR": str(folder / "data"),
        "ROOMS_DIR": str(rooms),
        "SKILLS_DIRS": str(skill.parent),
        "PORT": "0",
        "MAX_CONCURRENT_RUNS": "1000",
        **(further or {}),
    }
    environment = {f"AGENT_{key}": value for key, value in settings.items()}
    return Command([sys.executable, "-m", module, "serve"], environment)


def _framework(name: str, module: str) -> Callable[[str, Path], Command]:
    """The command of an application of ours on a framework, in the framework's environment."""
    python = peer.python(peer.find_requirements(name))
    return lambda upstream, folder: Command([str(python), "-m", module, upstream, str(folder)])


def _litellm(upstream: str, folder: Path) -> Command:
    """LiteLLM's proxy as its documentation configures it for production, without keys and without a database."""
    parameters = {
        "model": "openai/m",
        "api_base": upstream,
        "api_key": "none",
        "extra_headers": {"x-stepgate-purpose": "completion"},
    }
    config = folder / "config.yaml"  # JSON is YAML
    config.write_text(json.dumps({"model_list": [{"model_name": "stream", "litellm_params": parameters}]}), "utf-8")
    environment = {
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # no download at start
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # like the others, asks for no key
    }
    port = _find_free_port()
    program = peer.python(peer.find_requirements("litellm")).with_name("litellm")
    arguments = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    return Command(arguments, environment, f"http://127.0.0.1:{port}")


def _haystack(upstream: str, folder: Path) -> Command:
    """Haystack's agents in hayhooks, which finds their wrappers in a folder of pipelines."""
    pipelines = folder / "pipelines"
    for work, wrapper in (("turn", "TurnWrapper"), ("stream", "StreamWrapper")):
        (pipelines / work).mkdir(parents=True, exist_ok=True)
        source = f"from tests.bench.haystack_agent import {wrapper} as PipelineWrapper\n"
        (pipelines / work / "pipeline_wrapper.py").write_text(source, "utf-8")
    environment = {
        "OPENAI_BASE_URL": upstream,
        "OPENAI_API_KEY": "none",
        "HAYHOOKS_PIPELINES_DIR": str(pipelines),
        "HAYHOOKS_TRACING_ENABLED": "false",  # like the others, records nothing but what it stores
        "HAYHOOKS_MONITORING_ENABLED": "false",  # writes a credential into the home folder
        "HAYHOOKS_LOG_LEVEL": "WARNING",
        "HAYHOOKS_STARTUP_DEPLOY_STRATEGY": "sequential",  # threads that import our wrappers together may lose one
        "HAYSTACK_TELEMETRY_ENABLED": "false",  # sends what it is used for
    }
    port = _find_free_port()
    python = peer.python(peer.find_requirements("haystack"))
    arguments = [str(python), "-m", "tests.bench.haystack_agent", str(port)]
    return Command(arguments, environment, f"http://127.0.0.1:{port}")


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def _wait_for_port(process: Process, url: str, deadline_s: float = START_SECONDS) -> None:
    """Returns once something listens at `url`. AssertionError if that takes too long or the process ends before."""
    host, _, port = url.removeprefix("http://").partition(":")
    until = monotonic() + deadline_s
    while process.child.poll() is None and monotonic() < until:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            sleep(0.05)
        else:
            return
    process.kill()
    raise AssertionError(f"nothing listens at {url}:\n" + "\n".join(process.output))


def _make_peer(
    name: str, packages: str, module: str, command: Callable[[str, Path], Command], *works: str
) -> Contender:
    requirements = peer.find_requirements(name.lower())
    version = ", ".join(peer.read_version(package, requirements) for package in packages.split())
    return Contender(name, command, frozenset(works), version, requirements, module)


stepgate = Contender(STEPGATE, lambda upstream, folder: build_gateway_command("gateway.cli", upstream, folder))
undurable = Contender(
    "undurable", lambda upstream, folder: build_gateway_command("tests.bench.undurable", upstream, folder)
)
floor = Contender(FLOOR, lambda upstream, _: Command([sys.executable, "-m", "tests.bench.raw_proxy", upstream]))
peers = (
    _make_peer(
        PYDANTIC_AI, "pydantic-ai-slim", "pydantic_ai",
        _framework("pydantic-ai", "tests.bench.pydantic_ai_agent"), *ROOMS,
    ),
    _make_peer(
        LANGGRAPH, "langgraph", "langchain.agents",
        _framework("langgraph", "tests.bench.langgraph_agent"), "turn", "stream",
    ),
    _make_peer(HAYSTACK, "haystack-ai hayhooks", "hayhooks.server.app", _haystack, "turn", "stream"),
    _make_peer(
        OPENAI_AGENTS, "openai-agents", "agents",
        _framework("openai-agents", "tests.bench.openai_agents_agent"), "turn", "stream",
    ),
    _make_peer(LITELLM, "litellm", "litellm.proxy.proxy_cli", _litellm, "stream"),
)  # fmt: skip


def contenders(work: str) -> list[Contender]:
    """All that can be had here and do this kind of work."""
    return [stepgate, floor, *(one for one in peers if work in one.works and one.missing is None)]


def list_references(work: str, found: Mapping[str, float]) -> dict[str, float | str]:
    """The figures of the floor and of each peer that does this kind of work, or why there is none."""
    named = [FLOOR, *(one.name for one in peers if work in one.works)]
    absent = {one.name: one.missing for one in peers}
    return {name: found[name] if name in found else absent[name] or "not measured" for name in named}


@asynccontextmanager
async def arena(script: Script, work: str, *who: Contender) -> AsyncIterator[tuple[ScriptedServer, list[Running]]]:
    """The model server with this script, and the contenders (by default all that do `work`) in front of it, with fresh
    folders."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(ScriptedServer(script))
        running = [stack.enter_context(one.running(server.url, folder / one.name)) for one in (who or contenders(work))]
        yield server, running
