"""What `stepgate doctor` looks at, in the order one would ask."""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.config import PREFIX, Settings
from agent.core.errors import AgentError, ConfigError, StoreError
from agent.core.memory import EMBEDDER_SETTINGS
from gateway.bootstrap import Stepgate, build
from gateway.cli.listening import PortError, listen
from gateway.readiness import readiness

if TYPE_CHECKING:
    from mcp_tools.hub import McpServer

SERVER_SECONDS = 6.0
"""How long other people's MCP servers are waited for, all at once; one that is slow to end
takes two more, and a person is watching."""

_OLLAMA = (
    "set AGENT_LLM_BASE_URL=http://127.0.0.1:11434/v1 and AGENT_MODEL_FAST=llama3.1 for Ollama, or "
    "AGENT_MODEL_FAST=<LiteLLM name> with the provider's key"
)
_REMEDIES: Mapping[str, str] = {
    "data_dir": "make AGENT_DATA_DIR a writable folder with free space",
    "database_url": "start the server, or unset AGENT_DATABASE_URL to keep runs in the data folder",
    "model_fast": "start the endpoint, correct AGENT_LLM_BASE_URL, or unset it to work in rules mode",
    "mcp_servers": "correct the file; `stepgate mcp-servers add` writes it as it has to be",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `remedy` says what to do when it is not ok. `fatal` makes the exit code 1."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    fatal: bool = True


async def findings(settings: Settings, *, wrong: list[str], unknown: list[str]) -> AsyncIterator[Finding]:
    """Everything worth knowing. `wrong` are the settings that were left at their defaults, `unknown` those that are
    none. What keeps the gateway from starting is reported and left out, and the rest is looked at without it."""
    for fault in wrong:
        yield Finding("settings", False, fault, "correct it, or remove it for the default")
    for line in unknown:
        yield Finding("settings", False, line, "correct or remove it", fatal=False)
    async with AsyncExitStack() as stack:
        stand_in = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stepgate-doctor-")))
        stepgate, broken = await _wired(stack, settings, stand_in)
        for field, error in broken.items():
            yield Finding("settings", False, error.message, _REMEDIES.get(field, "correct it, or remove it"))
        if not (wrong or unknown or broken):
            yield _sources()
        if stepgate is not None:
            async for finding in _components(stepgate, broken):
                yield finding
        yield _port(settings)
        yield _ocr()
        for root in settings.readable_roots:
            yield _root(root)
        if stepgate is not None:
            async for finding in _contents(stepgate):
                yield finding


async def _wired(
    stack: AsyncExitStack, settings: Settings, stand_in: Path
) -> tuple[Stepgate | None, dict[str, AgentError]]:
    """The gateway, without the settings that keep it from starting; and those, by the field that was left out."""
    broken: dict[str, AgentError] = {}
    while True:
        try:
            return await stack.enter_async_context(build(settings, recover=False, foreign="remembered")), broken
        except AgentError as error:
            field = _field_of(settings, error)
            if field in broken:
                return None, broken
            broken[field] = error
            settings = settings.model_copy(update=_without(settings, field, stand_in))


def _field_of(settings: Settings, error: AgentError) -> str:
    """The setting an error of the start is about."""
    if isinstance(error, StoreError):
        return "data_dir" if settings.database_url is None else "database_url"
    named = re.match(rf"{PREFIX}(\w+):", error.message)
    return named[1].lower() if named else "rooms_dir"  # the one error that names a file instead is a room's


def _without(settings: Settings, field: str, stand_in: Path) -> dict[str, Any]:
    """The settings that let the rest be looked at. What lies in the data folder is still looked for there."""
    if field in ("data_dir", "database_url"):
        kept = {"mcp_servers": settings.mcp_servers_path, "file_roots": settings.readable_roots}
        return {"data_dir": stand_in, "database_url": None, **kept}
    if field == "model_fast":
        return {"llm_base_url": None, "model_fast": None, "model_high": None}
    if field == "mcp_servers":
        return {"mcp_servers": stand_in / "none.json"}
    return {field: Settings.model_fields[field].get_default() if field in Settings.model_fields else None}


async def _components(stepgate: Stepgate, broken: Mapping[str, object]) -> AsyncIterator[Finding]:
    """The store, the memory and the models, unless they were found broken already."""
    status = await readiness(stepgate)
    if not {"data_dir", "database_url"} & broken.keys():
        yield Finding("store", status["store"].ok, status["store"].detail, _REMEDIES["data_dir"])
        remedy = (
            f"check {EMBEDDER_SETTINGS}, and AGENT_QDRANT_URL; until then memory works with its own vectors, and "
            "collections by their words"
        )
        yield Finding("memory", status["memory"].ok, status["memory"].detail, remedy, fatal=False)
    if "redis" in status:
        without = "start it, or unset AGENT_REDIS_URL; until then conversations take no messages"
        yield Finding("redis", status["redis"].ok, status["redis"].detail, without)
    if "model_fast" in broken:
        return
    if not stepgate.settings.llm_configured:
        yield Finding("models", False, "none configured, rules mode", _OLLAMA, fatal=False)
        return
    remedy = "check AGENT_LLM_BASE_URL, AGENT_LLM_API_KEY and the endpoint"
    yield Finding("models", status["models"].ok, status["models"].detail, remedy)


def _sources() -> Finding:
    where = ".env and the environment" if Path(".env").is_file() else "the environment (no .env here)"
    return Finding("settings", True, f"read from {where}")


def _port(settings: Settings) -> Finding:
    where = f"{settings.host}:{settings.port}"
    try:
        listen(settings).close()
    except PortError as error:
        return Finding("port", False, error.message, "stop the other program, or set AGENT_PORT", fatal=False)
    except ConfigError as error:
        return Finding("port", False, error.message, "set AGENT_HOST to an address of this machine")
    return Finding("port", True, f"{where} is free")


def _ocr() -> Finding:
    from agent.knowledge.parsers import ocr  # noqa: PLC0415 - only here

    languages = ocr.installed()
    if not languages:
        return Finding("ocr", False, "no tesseract here: scanned pages are not read", ocr.missing("eng"), fatal=False)
    return Finding("ocr", True, f"scanned pages are read by tesseract, in {', '.join(sorted(languages))}")


def _root(root: Path) -> Finding:
    readable = root.is_dir() and os.access(root, os.R_OK | os.X_OK)
    detail = f"the file tools read {root}" if readable else f"{root} is no readable folder"
    return Finding("files", readable, detail, "create it, or set AGENT_FILE_ROOTS", fatal=False)


async def _contents(stepgate: Stepgate) -> AsyncIterator[Finding]:
    """Tools, skills, other people's servers, rooms."""
    yield Finding("tools", True, ", ".join(spec.name for spec in stepgate.registry.specs()))
    yield Finding("skills", True, ", ".join(skill.name for skill in stepgate.skills))
    for diagnostic in stepgate.skills.diagnostics:
        yield Finding("skill", False, str(diagnostic), "see `stepgate skills validate`", fatal=False)
    for finding in await _servers(stepgate.servers):
        yield finding
    yield Finding("rooms", True, ", ".join(room.id for room in stepgate.rooms))


async def _servers(servers: "Mapping[str, McpServer]") -> list[Finding]:
    """What became of connecting to each, all at the same time."""
    if not servers:
        return []
    from gateway.cli.foreign import try_server  # noqa: PLC0415 - the SDK of MCP, only where there are servers

    async with asyncio.TaskGroup() as group:
        for server in servers.values():
            if server.status != "disabled":
                group.create_task(try_server(server, SERVER_SECONDS))
    return [_server(server) for server in servers.values()]


def _server(server: "McpServer") -> Finding:
    name = f"mcp server {server.name}"
    if server.status == "down":
        see = f"see `stepgate mcp-servers test {server.name}`; correct it, or `stepgate mcp-servers remove` it"
        return Finding(name, False, f"down: {server.reason}", see, fatal=False)
    if server.quarantined:
        review = f"look at what they offer: `stepgate mcp-servers review {server.name}`"
        return Finding(name, False, server.standing, review, fatal=False)
    return Finding(name, True, server.status if server.status == "disabled" else server.standing)
