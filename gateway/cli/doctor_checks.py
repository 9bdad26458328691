"""The checks of `stepgate doctor`, in the order an operator would ask."""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.errors import AgentError, ConfigError, StoreError
from agent.core.extras import IN_CLONE, format_install_command, list_extras
from agent.core.settings import PREFIX, Settings
from agent.core.settings.aliases import get_variable
from agent.llm.embedder.port import EMBEDDER_SETTINGS
from agent.runs.retention import PASS_EVERY_SECONDS
from agent.sandbox.client import Sandbox, SandboxError
from agent.sandbox.interpreter import find_missing_interpreter
from agent.sandbox.kernel import get_landlock_version
from agent.sandbox.probe import find_missing_feature
from agent.storage.credentials import CredentialError, Credentials
from gateway.bootstrap import Stepgate, build_gateway
from gateway.cli.bind_address import PortError, bind_socket
from gateway.cli.doctor_finding import DoctorFinding
from gateway.cli.doctor_models import check_models
from gateway.cli.running_gateway import find_running_gateway, get_configured_url, is_gateway
from gateway.feature_loader import FeatureError, import_target, list_hooks
from gateway.readiness import check_readiness
from mcp_tools.builtin.run_python import build_limits

if TYPE_CHECKING:
    from mcp_tools.client.hub import McpServer

SERVER_SECONDS = 6.0
"""How long the check waits for all foreign MCP servers together. One that is slow to end takes two more seconds, while
a person watches.
"""

LATE_PASSES = 4
"""Passes over old runs that may be missing before it is reported."""
_REMEDIES: Mapping[str, str] = {
    "data_dir": "set AGENT_DATA_DIR to a writable folder with free space",
    "database_url": "start the server, or unset AGENT_DATABASE_URL to keep runs in the data folder",
    "model_fast": "start the endpoint, correct AGENT_LLM_BASE_URL, or unset it for rules mode",
    "mcp_servers": "correct the file; `stepgate mcp-servers add` writes a valid one",
}
_WITHOUT_SANDBOX = "see docs/sandbox.md; set AGENT_RUN_PYTHON=off to silence this"


async def run_checks(settings: Settings, *, wrong: list[str], unknown: list[str]) -> AsyncIterator[DoctorFinding]:
    """Yields every finding. `wrong` are invalid settings that were left at their defaults, `unknown` are unknown names.

    A setting that keeps the gateway from starting is reported and left out; the rest is checked without it.
    """
    for finding in _list_setting_faults(wrong, unknown):
        yield finding
    async with AsyncExitStack() as stack:
        stand_in = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stepgate-doctor-")))
        stepgate, broken = await _build_without_broken_settings(stack, settings, stand_in)
        for field, error in broken.items():
            yield DoctorFinding("settings", False, error.message, _REMEDIES.get(field, "correct it, or remove it"))
        if not (wrong or unknown or broken):
            yield _check_settings_source()
        if stepgate is not None:
            async for finding in _check_components(stepgate, broken):
                yield finding
        async for finding in _check_machine(settings):
            yield finding
        if stepgate is not None:
            async for finding in _check_features(stepgate):
                yield finding
            async for finding in _list_contents(stepgate):
                yield finding


def _list_setting_faults(wrong: list[str], unknown: list[str]) -> list[DoctorFinding]:
    return [
        *(DoctorFinding("settings", False, fault, "correct it, or remove it for the default") for fault in wrong),
        *(DoctorFinding("settings", False, line, "correct or remove it", fatal=False) for line in unknown),
    ]


async def _check_machine(settings: Settings) -> AsyncIterator[DoctorFinding]:
    """Yields what needs no gateway: the port, secrets, optional parts, the sandbox and the readable folders."""
    yield await asyncio.to_thread(_check_port, settings)
    yield _list_secret_names(settings)
    yield _check_extras()
    yield await _check_sandbox(settings)
    for root in settings.readable_roots:
        yield _check_file_root(root)


async def _check_features(stepgate: Stepgate) -> AsyncIterator[DoctorFinding]:
    """Yields what features find. A check that fails is a finding itself: the others are of use without it."""
    for name, target in list_hooks(stepgate.host.context.features, lambda feature: feature.doctor_checks):
        try:
            async for finding in import_target(target)(stepgate):
                yield finding
        except (AgentError, FeatureError) as error:
            yield DoctorFinding(name, False, str(error), "correct what it names; the other checks do not depend on it")


async def _build_without_broken_settings(
    stack: AsyncExitStack, settings: Settings, stand_in: Path
) -> tuple[Stepgate | None, dict[str, AgentError]]:
    """The gateway without the settings that keep it from starting, and their errors by field."""
    broken: dict[str, AgentError] = {}
    while True:
        try:
            return await stack.enter_async_context(_start(settings)), broken
        except AgentError as error:
            field = _find_setting(settings, error)
            if field in broken:
                return None, broken
            broken[field] = error
            settings = settings.model_copy(update=_replace_setting(settings, field, stand_in))


def _start(settings: Settings) -> AbstractAsyncContextManager[Stepgate]:
    """A gateway that starts with broken room files too: they are reported one by one."""
    return build_gateway(settings, recover=False, foreign="remembered", skip_broken_rooms=True)


def _find_setting(settings: Settings, error: AgentError) -> str:
    """The setting that a start-up error is about."""
    if isinstance(error, StoreError):
        return "data_dir" if settings.database_url is None else "database_url"
    if error.message.startswith(str(settings.mcp_servers_path)):
        return "mcp_servers"
    if error.message.startswith("mcp_views:"):
        return "mcp_views_dir"
    named = re.match(rf"{PREFIX}(\w+):", error.message)
    return named[1].lower() if named else "rooms_dir"  # only errors of rooms name a file instead


def _replace_setting(settings: Settings, field: str, stand_in: Path) -> dict[str, Any]:
    """Settings with which the rest can be checked. The contents of the data folder are still read from
    there.
    """
    if field in ("data_dir", "database_url"):
        fixed_paths = {"mcp_servers": settings.mcp_servers_path, "file_roots": settings.readable_roots}
        return {"data_dir": stand_in, "database_url": None, "dispatch": "local", **fixed_paths}
    if field == "model_fast":
        return {"llm_base_url": None, "model_fast": None, "model_high": None}
    if field == "mcp_servers":
        return {"mcp_servers": stand_in / "none.json"}
    if field == "mcp_views_dir":
        return {"mcp_views_dir": stand_in}
    return {field: Settings.model_fields[field].get_default() if field in Settings.model_fields else None}


async def _check_components(stepgate: Stepgate, broken: Mapping[str, object]) -> AsyncIterator[DoctorFinding]:
    """Yields the store, the memory and the models, unless they are already known to be broken."""
    status = await check_readiness(stepgate)
    if not {"data_dir", "database_url"} & broken.keys():
        yield DoctorFinding("store", status["store"].ok, status["store"].detail, _REMEDIES["data_dir"])
        remedy = (
            f"check {EMBEDDER_SETTINGS}, and AGENT_QDRANT_URL; until then memory uses its own vectors, and "
            "collections are searched by words"
        )
        yield DoctorFinding("memory", status["memory"].ok, status["memory"].detail, remedy, fatal=False)
        yield await _check_retention(stepgate)
    if "model_fast" in broken:
        return
    async for finding in check_models(stepgate, status["models"]):
        yield finding


async def _check_retention(stepgate: Stepgate) -> DoctorFinding:
    """Says how long ended runs are kept, and when the last pass over them ended."""
    days = stepgate.settings.keep_days
    if not days:
        return DoctorFinding("retention", True, "ended runs are kept for ever (AGENT_KEEP_DAYS)")
    done = await stepgate.retention.lease.get_done()
    last = f"{datetime.fromtimestamp(done, UTC):%Y-%m-%d %H:%M} UTC" if done else "none yet"
    late = bool(done) and done < stepgate.retention.clock() - LATE_PASSES * PASS_EVERY_SECONDS
    detail = f"ended runs are kept for {days:g} days; last pass: {last}"
    return DoctorFinding("retention", not late, detail, "start a gateway, or run `stepgate prune`", fatal=False)


def _check_settings_source() -> DoctorFinding:
    where = ".env and the environment" if Path(".env").is_file() else "the environment (no .env here)"
    return DoctorFinding("settings", True, f"read from {where}")


def _check_port(settings: Settings) -> DoctorFinding:
    where = f"{settings.host}:{settings.port}"
    try:
        bind_socket(settings).close()
    except PortError as error:
        if is_gateway(url := get_configured_url(settings)):
            return DoctorFinding("port", True, f"a Stepgate answers at {url}")
        return DoctorFinding("port", False, error.message, "stop the other program, or set AGENT_PORT", fatal=False)
    except ConfigError as error:
        return DoctorFinding("port", False, error.message, "set AGENT_HOST to an address of this machine")
    running = find_running_gateway(settings)
    return DoctorFinding("port", True, f"{where} is free{f'; the gateway runs at {running}' if running else ''}")


def _check_extras() -> DoctorFinding:
    extras = list_extras()
    missing = [f"{name} ({extra.purpose})" for name, extra in extras.items() if not extra.is_installed]
    if not missing:
        return DoctorFinding("optional parts", True, f"installed: {', '.join(extras)}")
    one = format_install_command("NAME")
    hint = f"`make dev` installs all of them, `{one}` one" if IN_CLONE else f"`{one}` installs one, NAME `all` all"
    return DoctorFinding("optional parts", True, f"not installed: {', '.join(missing)}; {hint}")


async def _check_sandbox(settings: Settings) -> DoctorFinding:
    """Runs a program in the sandbox of `run_python`, if there is one."""
    if settings.run_python == "off":
        return DoctorFinding("run_python", True, "switched off (AGENT_RUN_PYTHON)")
    missing = find_missing_feature()
    if missing is not None and find_missing_interpreter() is None:
        detail = f"in the interpreter, without files and with few modules, because no process can be locked: {missing}"
        return DoctorFinding("run_python", True, detail)
    if missing is not None:
        return DoctorFinding(
            "run_python", False, f"off, because there is no sandbox: {missing}", _WITHOUT_SANDBOX, fatal=False
        )
    sandbox = Sandbox(build_limits(settings), parallel=1)
    try:
        tried = await sandbox.run("import decimal, sqlite3; 6 * 7", {}, {})
        isolated = await sandbox.is_isolated()
    except SandboxError as error:
        return DoctorFinding("run_python", False, error.message, _WITHOUT_SANDBOX, fatal=False)
    finally:
        await sandbox.aclose()
    if tried.value != 42:
        return DoctorFinding("run_python", False, f"a program failed: {tried.error}", _WITHOUT_SANDBOX, fatal=False)
    namespaces = "namespaces" if isolated else "no namespaces (programs cannot write files)"
    return DoctorFinding("run_python", True, f"seccomp, Landlock {get_landlock_version()}, {namespaces}")


def _check_file_root(root: Path) -> DoctorFinding:
    readable = root.is_dir() and os.access(root, os.R_OK | os.X_OK)
    detail = f"the file tools read {root}" if readable else f"{root} is not a readable folder"
    return DoctorFinding("files", readable, detail, "create it, or set AGENT_FILE_ROOTS", fatal=False)


def _list_secret_names(settings: Settings) -> DoctorFinding:
    """The secrets that are configured, by name only: those of the settings and of the file of credentials."""
    names = [get_variable(name) for name in settings.list_secret_names()]
    try:
        stored = Credentials(settings.credentials_file).list_names()
    except CredentialError as error:
        return DoctorFinding("secrets", False, error.message, "correct the file", fatal=False)
    files = f"; in {settings.credentials_file.name}: {', '.join(stored)}" if stored else ""
    return DoctorFinding("secrets", True, f"configured: {', '.join(names) or 'none'}{files}")


async def _list_contents(stepgate: Stepgate) -> AsyncIterator[DoctorFinding]:
    """Yields tools, skills, foreign MCP servers and rooms."""
    yield DoctorFinding("tools", True, ", ".join(spec.name for spec in stepgate.registry.list_specs()))
    features = stepgate.host.context.features
    yield DoctorFinding("features", True, ", ".join(feature.name for feature in features))
    for name, origin in features.list_installed():
        yield DoctorFinding(f"extension features {name}", True, origin)
    for skipped in features.skipped:
        remedy = "correct or uninstall it; the gateway works without it"
        yield DoctorFinding(
            f"feature {skipped.name}", False, f"{skipped.origin} is skipped: {skipped.error}", remedy, fatal=False
        )
    for extension in stepgate.extensions:
        name = f"extension {extension.group.removeprefix('stepgate.')} {extension.name}"
        origin = f"{extension.origin} ({extension.value})"
        if extension.error:
            remedy = f"upgrade or uninstall {extension.package}; the gateway works without it"
            yield DoctorFinding(name, False, f"{origin} is skipped: {extension.error}", remedy, fatal=False)
        else:
            yield DoctorFinding(name, True, origin)
    yield DoctorFinding("skills", True, ", ".join(skill.name for skill in stepgate.skills))
    for diagnostic in stepgate.skills.diagnostics:
        yield DoctorFinding("skill", False, str(diagnostic), "see `stepgate skills validate`", fatal=False)
    for finding in await _check_servers(stepgate.servers):
        yield finding
    yield DoctorFinding("rooms", True, ", ".join(room.id for room in stepgate.rooms))


async def _check_servers(servers: "Mapping[str, McpServer]") -> list[DoctorFinding]:
    """Connects to all servers at the same time and returns the results."""
    if not servers:
        return []
    from gateway.cli.mcp_connection import try_server  # noqa: PLC0415 - the SDK of MCP, only where there are servers

    async with asyncio.TaskGroup() as group:
        for server in servers.values():
            if server.status != "disabled":
                group.create_task(try_server(server, SERVER_SECONDS))
    return [_report_server(server) for server in servers.values()]


def _report_server(server: "McpServer") -> DoctorFinding:
    name = f"mcp server {server.name}"
    if server.status == "down":
        see = f"see `stepgate mcp-servers test {server.name}`; correct it, or `stepgate mcp-servers remove` it"
        return DoctorFinding(name, False, f"down: {server.reason}", see, fatal=False)
    if server.quarantined:
        review = f"review them: `stepgate mcp-servers review {server.name}`"
        return DoctorFinding(name, False, server.status_line, review, fatal=False)
    return DoctorFinding(name, True, server.status if server.status == "disabled" else server.status_line)
