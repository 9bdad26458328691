"""`stepgate models pull` against a server that speaks the hub's protocol: whole, resumed, damaged, unknown."""

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from agent.core.errors import ConfigError
from gateway.cli.model_pull import choose_file
from gateway.local_engine.model_file import check_model_file
from gateway.model_choice import make_file_entry
from tests.support.processes import start
from tests.support.tiny_gguf import write_tiny_gguf

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "tiny-q4_k_m.gguf"
DEADLINE_S = 120


@dataclass
class Hub:
    """A hub with one repository, `acme/tiny-GGUF`."""

    data: bytes
    sha256: str
    url: str = ""
    files: list[str] = field(default_factory=lambda: [NAME])
    """The names of its models, all with the same data."""
    ranges: list[str] = field(default_factory=list)
    cuts_at: int | None = None
    """Bytes after which the first connection breaks."""

    async def describe(self, request: web.Request) -> web.Response:
        """The repository with its files, as `/api/models/OWNER/NAME?blobs=true` has it."""
        if request.match_info["name"] != "tiny-GGUF":
            return web.json_response(
                {"error": "Repository not found"}, status=404, headers={"X-Error-Code": "RepoNotFound"}
            )
        size = len(self.data)
        lfs = {"sha256": self.sha256, "size": size, "pointerSize": 134}
        models = [{"rfilename": name, "size": size, "lfs": lfs} for name in self.files]
        files = [{"rfilename": "README.md", "size": 3}, *models]
        return web.json_response({"id": "acme/tiny-GGUF", "sha": COMMIT, "siblings": files})

    async def send(self, request: web.Request) -> web.StreamResponse:
        """The file, from the place that the client asks for."""
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{self.sha256}"', "Accept-Ranges": "bytes"}
        if request.method == "HEAD":
            return web.Response(headers={**headers, "Content-Length": str(len(self.data))})
        asked = request.headers.get("Range", "")
        self.ranges.append(asked)
        first = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        part = self.data[first:]
        response = web.StreamResponse(
            status=206 if first else 200, headers={**headers, "Content-Length": str(len(part))}
        )
        if first:
            response.headers["Content-Range"] = f"bytes {first}-{len(self.data) - 1}/{len(self.data)}"
        await response.prepare(request)
        if self.cuts_at is not None:
            cut, self.cuts_at = self.cuts_at, None
            await response.write(part[:cut])
            await asyncio.sleep(0.2)
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(part)
        return response


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    data = write_tiny_gguf(tmp_path / "source.gguf").read_bytes()
    hub = Hub(data, hashlib.sha256(data).hexdigest())
    app = web.Application()
    for path in ("/api/models/acme/{name}", "/api/models/acme/{name}/revision/{revision}"):
        app.router.add_get(path, hub.describe)
    app.router.add_get("/acme/tiny-GGUF/resolve/{revision}/{file}", hub.send)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    hub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield hub
    await runner.cleanup()


async def pull(hub: Hub, folder: Path, repository: str = "acme/tiny-GGUF") -> tuple[int, str]:
    environment = {
        "AGENT_DATA_DIR": str(folder / "data"), "HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hub"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    command = start([sys.executable, "-m", "gateway", "models", "pull", repository], environment=environment)
    code = await asyncio.to_thread(command.wait, DEADLINE_S)
    return code, "\n".join(command.output)


async def test_a_file_is_chosen_fetched_and_checked(hub: Hub, tmp_path: Path) -> None:
    code, output = await pull(hub, tmp_path)
    path = tmp_path / "data/models" / NAME
    assert code == 0, output
    assert f"{path}: 0 MB, checksum verified" in output
    assert f"stepgate models use {path}" in output
    assert path.read_bytes() == hub.data


async def test_a_broken_transfer_goes_on_where_it_was(hub: Hub, tmp_path: Path) -> None:
    hub.data += bytes(25_000_000)  # the client keeps what came in pieces of 10 MB
    hub.sha256 = hashlib.sha256(hub.data).hexdigest()
    hub.cuts_at = 21_000_000
    code, output = await pull(hub, tmp_path)
    if code:  # the client has given up; the next command goes on
        code, output = await pull(hub, tmp_path)
    assert code == 0, output
    assert (tmp_path / "data/models" / NAME).read_bytes() == hub.data
    assert hub.ranges[0] == ""
    assert hub.ranges[-1].startswith("bytes="), "what was there is not fetched again"
    assert int(hub.ranges[-1].removeprefix("bytes=").split("-")[0]) > 0


async def test_what_is_not_what_the_hub_has_is_removed(hub: Hub, tmp_path: Path) -> None:
    hub.data = hub.data[:-1] + bytes([hub.data[-1] ^ 1])
    code, output = await pull(hub, tmp_path)
    assert (code, "does not match the hub's checksum" in output) == (1, True), output
    assert not (tmp_path / "data/models" / NAME).exists()


async def test_an_unknown_repository_is_one_line(hub: Hub, tmp_path: Path) -> None:
    code, output = await pull(hub, tmp_path, "acme/none")
    assert (code, "acme/none cannot be fetched" in output) == (1, True), output
    assert "Traceback" not in output


async def test_all_parts_of_a_split_file_are_fetched_and_checked(hub: Hub, tmp_path: Path) -> None:
    hub.files = [NAME.replace(".gguf", f"-0000{number}-of-00002.gguf") for number in (2, 1)]
    code, output = await pull(hub, tmp_path)
    assert code == 0, output
    assert output.count("checksum verified") == 2
    assert output.endswith("tiny-q4_k_m-00001-of-00002.gguf"), "the first part is used"
    assert {path.name for path in (tmp_path / "data/models").glob("*.gguf")} == {*hub.files}
    hub.files.pop()
    code, output = await pull(hub, tmp_path / "other")
    assert (code, "lacks tiny-q4_k_m-00001-of-00002.gguf, a part of the model" in output) == (1, True), output


def test_a_split_model_is_checked_with_all_its_parts(tmp_path: Path) -> None:
    first, second = (write_tiny_gguf(tmp_path / f"m-0000{number}-of-00002.gguf") for number in (1, 2))
    assert check_model_file(first) == first.stat().st_size + second.stat().st_size
    with pytest.raises(ConfigError, match=r"name its first part, .*m-00001-of-00002\.gguf"):
        check_model_file(second)
    assert make_file_entry(first, ("fast",), None).model == "m"
    second.unlink()
    with pytest.raises(ConfigError, match=r"does not exist; all parts of m-00001-of-00002\.gguf belong in one folder"):
        check_model_file(first)


def test_the_file_with_four_bits_is_chosen_and_none_is_guessed() -> None:
    assert choose_file(["mtp-Q4_0.gguf", "a-MTP-Q8_0.gguf"]) == "a-MTP-Q8_0.gguf"
    parts = [f"Q4_K_M/a-Q4_K_M-0000{number}-of-00003.gguf" for number in (2, 3, 1)]
    assert choose_file(["a-Q8_0.gguf", *parts]) == parts[2]
    assert choose_file(["a-f16-00002-of-00002.gguf", "a-f16-00001-of-00002.gguf"]) == "a-f16-00001-of-00002.gguf"
    assert choose_file(["a-Q8_0.gguf", "a-Q4_K_M.gguf", "mmproj-q4_k_m.gguf"]) == "a-Q4_K_M.gguf"
    assert choose_file(["README.md", "only-f16.gguf"]) == "only-f16.gguf"
    with pytest.raises(ConfigError, match="name one with --file"):
        choose_file(["a-f16.gguf", "b-f16.gguf"])
    with pytest.raises(ConfigError, match="it has none"):
        choose_file(["model.safetensors"])
