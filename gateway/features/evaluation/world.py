"""A task's world: a temporary folder with files, tables, a web site and MCP servers, and a gateway process on it."""

import asyncio
import contextlib
import functools
import hashlib
import http.server
import json
import os
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import httpx
from pydantic import JsonValue, SecretStr

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import ConfigError
from agent.core.settings import PREFIX, Settings
from gateway.access.authentication import is_loopback
from gateway.features.evaluation.task_files import SITE_PLACEHOLDER, EvalTask, WorldSpec
from gateway.features.evaluation.task_sets import find_set
from gateway.features.evaluation.world_tables import render_table

SOURCE_ROOT = Path(__file__).resolve().parents[3]
"""Where the packages are, for the processes of a world: they start in other folders."""
COLLECTION = "papers"
GATEWAY_COMMAND: Iterable[str] = (sys.executable, "-m", "gateway.cli", "serve")
START_SECONDS = 120.0
"""Time limit of a gateway's start; the first one on a machine compiles its modules."""
STOP_SECONDS = 5.0
INGEST_SECONDS = 120.0
HASHED_BYTES = 65_536
"""A snapshot holds the SHA-256 of longer files in place of their text."""
OWN_SETTINGS = frozenset({
    "host", "port", "data_dir", "database_url", "file_roots", "mcp_servers", "mcp_pin", "fetch_allow_hosts",
    "skills_dirs", "require_key", "redis_url", "qdrant_url", "qdrant_path", "open_webui", "web", "drain_seconds",
    "discover", "model_probe",
})  # fmt: skip
"""Settings that the world makes for its gateway, or that would reach stores outside it. All others are passed on."""

Snapshot = dict[str, JsonValue]


@dataclass(frozen=True)
class World:
    """A prepared world. `url` is its gateway's address, empty as long as no gateway runs."""

    folder: Path
    site_url: str = ""
    url: str = ""

    def fill_in(self, text: str) -> str:
        """The text with the address of the web site in place of `{site}`."""
        return text.replace(SITE_PLACEHOLDER, self.site_url)

    def take_snapshot(self) -> Snapshot:
        """The state of the servers and the files, by path."""
        state = json.loads((self.folder / "state.json").read_text("utf-8"))
        snapshot = dict(_flatten("", state))
        files = self.folder / "files"
        for path in sorted(path for path in files.rglob("*") if path.is_file()):
            data = path.read_bytes()
            long = len(data) > HASHED_BYTES
            text = hashlib.sha256(data).hexdigest() if long else data.decode("utf-8", "replace")
            snapshot[f"files/{path.relative_to(files).as_posix()}"] = text
        return snapshot


def compare_snapshots(before: Snapshot, after: Snapshot) -> Snapshot:
    """The changes by path: the new value, or None for what was removed."""
    return {path: after.get(path) for path in sorted(before.keys() | after.keys()) if _differs(path, before, after)}


def _differs(path: str, before: Snapshot, after: Snapshot) -> bool:
    return (path in before) != (path in after) or before.get(path) != after.get(path)


def _flatten(prefix: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yields the leaves of a JSON tree with their paths."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value, start=1)
        for key, item in pairs:
            yield from _flatten(f"{prefix}/{key}" if prefix else str(key), item)
    else:
        yield prefix, value


@contextmanager
def prepare_world(spec: WorldSpec) -> Iterator[World]:
    """Makes the files of a world in a temporary folder and starts its web site; both are gone afterwards."""
    data = find_set(spec.set_name).data_folder
    with tempfile.TemporaryDirectory(prefix="stepgate-eval-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        files = folder / "files"
        (files / "out").mkdir(parents=True)
        (folder / "state.json").write_bytes((data / "state.json").read_bytes())
        for table in spec.tables:
            (files / f"{table}.csv").write_text(render_table(spec.set_name, table), "utf-8")
        for document in spec.documents:
            target = files / "documents" / document
            target.parent.mkdir(exist_ok=True)
            target.write_bytes((data / "documents" / document).read_bytes())
        for path, text in spec.files.items():
            (files / path).parent.mkdir(parents=True, exist_ok=True)
            (files / path).write_text(text, "utf-8")
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / "mcp_servers.json").write_text(
            json.dumps({"mcpServers": _build_servers(spec, folder)}), "utf-8"
        )
        yield World(folder, site_url=stack.enter_context(_serve_site(data / "site")) if spec.site else "")


def _build_servers(spec: WorldSpec, folder: Path) -> dict[str, JsonValue]:
    """The entries of `mcp_servers.json`."""
    return {
        name: {
            "command": sys.executable,
            "args": ["-m", "gateway.features.evaluation.world_servers", spec.set_name, name, str(folder)],
            "cwd": str(SOURCE_ROOT),
            "trusted": True,
            "tools": {"approve": [tool.split("__")[1] for tool in spec.approve_tools if tool.startswith(f"{name}__")]},
        }
        for name in spec.servers
    }


class _SiteHandler(http.server.SimpleHTTPRequestHandler):
    """Serves the pages of the web site and writes no log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Logs nothing."""


@contextmanager
def _serve_site(folder: Path) -> Iterator[str]:
    """Yields the address of the web site, served on this machine."""
    handler = functools.partial(_SiteHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@asynccontextmanager
async def open_world(task: EvalTask, settings: Mapping[str, str]) -> AsyncIterator[World]:
    """Yields the task's world with a running gateway. `settings` are environment variables, see `list_settings`.

    Raises `ConfigError` if the gateway does not start or the documents cannot be read.
    """
    with prepare_world(task.world) as world:
        async with _run_gateway(world, _add_world_settings(task.world, settings)) as url:
            await _wait_for_servers(url, task.world.servers)
            if task.world.collection:
                await _ingest_documents(url, world.folder / "files" / "documents")
            yield World(world.folder, world.site_url, url)


def _add_world_settings(spec: WorldSpec, settings: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}GUARD_ANSWER_PII": "flag", **settings} if spec.contacts else dict(settings)


def choose_parallel(settings: Settings) -> int:
    """How many tasks run at a time. A model on this machine answers one after another: what waits for it would only be
    measured as slow.
    """
    host = urlsplit(settings.llm_base_url or "").hostname
    return 1 if host is not None and is_loopback(host) else max(1, (os.cpu_count() or 2) - 1)


def list_settings(settings: Settings) -> dict[str, str]:
    """The configured settings as environment variables, without those that a world makes itself."""
    chosen = settings.model_fields_set - OWN_SETTINGS
    values = {name: getattr(settings, name) for name in sorted(chosen)}
    return {f"{PREFIX}{name.upper()}": _to_text(value) for name, value in values.items() if value is not None}


def _to_text(value: object) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case Path():
            return str(value.resolve())
        case str():
            return value
        case tuple():
            return json.dumps([_to_text(item) for item in value])
        case _:
            return json.dumps(value, default=list)


@asynccontextmanager
async def _run_gateway(world: World, settings: Mapping[str, str]) -> AsyncIterator[str]:
    """Yields the address of a `stepgate serve` on the world's folder. The process and its servers end afterwards."""
    own = {
        "HOST": "127.0.0.1", "PORT": "0", "DISCOVER": "off", "MODEL_PROBE": "off",
        "DATA_DIR": str(world.folder / "data"), "REQUIRE_KEY": "never",
        "FILE_ROOTS": str(world.folder / "files"),
        "FETCH_ALLOW_HOSTS": world.site_url.removeprefix("http://"), "SKILLS_DIRS": "none", "WEB": "false",
        "DRAIN_SECONDS": "1", "OPEN_WEBUI": "never",
    }  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {**settings, **{PREFIX + name: value for name, value in own.items() if value}}
    environment["PYTHONPATH"] = str(SOURCE_ROOT)
    process = await asyncio.create_subprocess_exec(
        *GATEWAY_COMMAND,
        env=environment, cwd=world.folder, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    reading: asyncio.Task[None] | None = None
    try:
        url = await _read_address(process)
        assert process.stderr is not None
        reading = asyncio.create_task(_discard(process.stderr), name="gateway output")
        yield url
    finally:
        await _stop(process)
        if reading is not None:
            await cancel_and_wait(reading)


async def _read_address(process: asyncio.subprocess.Process) -> str:
    """The gateway's address once it listens."""
    assert process.stderr is not None
    lines: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while line := (await process.stderr.readline()).decode("utf-8", "replace").rstrip():
                lines.append(line)
                if line.startswith("Stepgate listens on "):
                    return line.rsplit(" ", 1)[1]
    raise ConfigError("the gateway of the evaluation did not start: " + (" | ".join(lines[-3:]) or "no output"))


async def _wait_for_servers(url: str, servers: Sequence[str]) -> None:
    """Waits until the tools of all servers are registered. Raises `ConfigError` if they are not in time."""
    missing = set(servers)
    deadline = monotonic() + START_SECONDS
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        while missing:
            tools = (await client.get("/v1/tools")).raise_for_status().json()["data"]
            missing = set(servers) - {tool["name"].partition("__")[0] for tool in tools}
            if monotonic() > deadline:
                raise ConfigError(f"the evaluation's MCP servers did not start: {', '.join(sorted(missing))}")
            await asyncio.sleep(0.05 if missing else 0)


async def _discard(stream: asyncio.StreamReader) -> None:
    while await stream.read(HASHED_BYTES):
        pass


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Ends the gateway, by force if it does not end in time. Its MCP servers end with their input."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _ingest_documents(url: str, folder: Path) -> None:
    """Reads the documents into the collection and waits for the end. Raises `ConfigError` if that fails."""
    body = {"source_type": "local", "source_identifier": str(folder)}
    deadline = monotonic() + INGEST_SECONDS
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        response = await client.post(f"/v1/collections/{COLLECTION}/ingest", json=body)
        job = response.json()
        while response.is_success and job["status"] in ("queued", "running"):
            if monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
            response = await client.get(f"/v1/jobs/{job['id']}")
            job = response.json()
    if not response.is_success or job["status"] != "done":
        raise ConfigError(f"the evaluation's documents were not read: {json.dumps(job)[:300]}")
