"""`stepgate doctor`: what is configured, what is reachable, and what to do about what is not."""

import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from agent.core.config import Settings, unknown_settings
from gateway.bootstrap import Stepgate
from gateway.cli.session import with_stepgate


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `remedy` says what to do when it is not ok. `fatal` makes the exit code 1."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    fatal: bool = True


def doctor() -> None:
    """Check the configuration, the store, the models, skills and files; exit code 1 when something is broken."""

    async def work(stepgate: Stepgate) -> int:
        console, broken = Console(), 0
        async for finding in findings(stepgate):
            mark = (
                "[green]ok  [/green]" if finding.ok else "[red]FAIL[/red]" if finding.fatal else "[yellow]note[/yellow]"
            )
            detail = escape(finding.detail.replace("\n", " "))
            console.print(f"{mark} {finding.name}: {detail}", highlight=False, soft_wrap=True)
            if not finding.ok and finding.remedy:
                console.print(f"       do: {finding.remedy}", highlight=False, soft_wrap=True)
            broken += finding.fatal and not finding.ok
        return 1 if broken else 0

    raise SystemExit(with_stepgate(work))


async def findings(stepgate: Stepgate) -> AsyncIterator[Finding]:
    """Everything worth knowing, in the order one would ask."""
    settings = stepgate.settings
    yield _settings()
    status = await stepgate.readiness()
    store = status["store"]
    yield Finding("store", store.ok, store.detail, "make AGENT_DATA_DIR a writable folder with free space")
    if not settings.llm_configured:
        remedy = (
            "set AGENT_LLM_BASE_URL=http://127.0.0.1:11434/v1 and AGENT_MODEL_FAST=llama3.1 for Ollama, or "
            "AGENT_MODEL_FAST=<LiteLLM name> with the provider's key"
        )
        yield Finding("models", False, "none configured, rules mode", remedy, fatal=False)
    else:
        models = status["models"]
        yield Finding(
            "models", models.ok, models.detail, "check AGENT_LLM_BASE_URL, AGENT_LLM_API_KEY and the endpoint"
        )
    yield _port(settings)
    for root in settings.readable_roots:
        yield _root(root)
    yield Finding("tools", True, ", ".join(spec.name for spec in stepgate.registry.specs()))
    yield Finding("skills", True, ", ".join(skill.name for skill in stepgate.skills))
    for name, server in stepgate.hub.servers.items():
        remedy = f"see `stepgate mcp-servers test {name}`"
        detail = f"{server.status} {server.reason}".strip()
        yield Finding(f"mcp server {name}", server.status != "down", detail, remedy, fatal=False)
    for diagnostic in stepgate.skills.diagnostics:
        yield Finding("skill", False, str(diagnostic), "see `stepgate skills validate`", fatal=False)
    yield Finding("rooms", True, ", ".join(room.id for room in stepgate.rooms))


def _settings() -> Finding:
    unknown = unknown_settings()
    where = ".env and the environment" if Path(".env").is_file() else "the environment (no .env here)"
    detail = "; ".join(unknown) if unknown else f"read from {where}"
    return Finding("settings", not unknown, detail, "correct or remove the names", fatal=False)


def _port(settings: Settings) -> Finding:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            detail = f"{settings.host}:{settings.port} cannot be bound: {error.strerror}"
            return Finding("port", False, detail, "is a gateway running already? else set AGENT_PORT", fatal=False)
    return Finding("port", True, f"{settings.host}:{settings.port} is free")


def _root(root: Path) -> Finding:
    readable = root.is_dir() and os.access(root, os.R_OK | os.X_OK)
    detail = f"the file tools read {root}" if readable else f"{root} is no readable folder"
    return Finding("files", readable, detail, "create it, or set AGENT_FILE_ROOTS", fatal=False)
