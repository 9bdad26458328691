"""Folders that are added to those that may be read: by a person on this machine, at once, and never too many files."""

import json
from pathlib import Path

import httpx
import pytest

from agent.core.readable_roots import AddedRoots, ReadableRoots
from agent.core.settings import Settings
from gateway import added_roots
from gateway.added_roots import RootRefusedError, add_root, remove_root
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate

ROOTS = "/v1/admin/file-roots"


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "boats.md").write_text("# Boats\n\nThe ferry leaves at nine.\n")
    return folder


def replace_by_link(folder: Path, target: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(target)


def settings_at(folder: Path, **options: object) -> Settings:
    return Settings(_env_file=None, data_dir=folder / "data", **options)  # type: ignore[arg-type]


async def test_a_folder_is_read_as_soon_as_it_is_added_and_not_after_it_is_removed(serve: Serve, papers: Path) -> None:
    call = {"tool": "read_file", "args": {"path": str(papers / "boats.md")}}
    read = {"prompt": "", "metadata": {"tool_calls": [call]}}
    async with serve(require_key="never") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        before = (await client.post("/v1/agent", json=read)).text
        added = await client.post(ROOTS, json={"path": str(papers)})
        assert added.status_code == 201, added.text
        assert {"path": str(papers), "is_added": True} in added.json()["data"]
        during = (await client.post("/v1/agent", json=read)).text
        folders = (await client.get("/v1/sources/folders")).json()["folders"]
        source = {"source_type": "local", "source_identifier": str(papers)}
        assert (await client.post("/v1/sources", json=source)).status_code == 201
        again = await client.post(ROOTS, json={"path": str(papers)})
        removed = await client.delete(ROOTS, params={"path": str(papers)})
        assert [one["is_added"] for one in removed.json()["data"]] == [False]
        assert (await client.delete(ROOTS, params={"path": str(papers)})).status_code == 404
        after = (await client.post("/v1/agent", json=read)).text
        audited = (await client.get("/v1/audit", params={"action": "file_root"})).json()["data"]
    assert "ferry leaves" in during
    assert "ferry leaves" not in before + after
    assert str(papers) in [one["path"] for one in folders]
    assert again.status_code == 422
    assert "already readable" in again.text
    assert {one["action"] for one in audited} == {"file_root.add", "file_root.remove"}


@pytest.mark.parametrize(
    ("options", "headers", "reason"),
    [
        ({"public_url": "https://gate.example.org", "require_key": "never"}, {}, "other machines reach this gateway"),
        ({}, {"x-forwarded-for": "203.0.113.9"}, "on another machine"),
    ],
)
async def test_a_folder_is_added_only_from_this_machine(
    serve: Serve, papers: Path, options: dict[str, str], headers: dict[str, str], reason: str
) -> None:
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client:
        report = (await client.get(ROOTS)).json()
        refused = await client.post(ROOTS, json={"path": str(papers)})
    assert reason in report["obstacle"]
    assert "stepgate file-roots add" in report["obstacle"]
    assert (refused.status_code, reason in refused.text) == (403, True)


async def test_a_key_without_admin_adds_no_folder(serve: Serve, papers: Path) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "name": "laptop", "scopes": ["chat", "agent", "ingest"]}
        key = (await client.post("/v1/admin/keys", json=fields)).json()["text"]
        for method, body in (("GET", None), ("POST", {"path": str(papers)})):
            answer = await client.request(method, ROOTS, json=body, headers={"x-api-key": key})
            assert answer.status_code == 403


async def test_no_tool_adds_a_folder(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        tools = (await client.get("/v1/tools")).text
    assert "calculator" in tools
    assert "file_root" not in tools.replace("-", "_")


def test_too_wide_hidden_and_system_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "homes" / "anna"
    for name in (".ssh/old", "project/.git/hooks", "docs", "stepgate/data"):
        (home / name).mkdir(parents=True)
    (home / "notes.txt").write_text("x")
    (home / "link").symlink_to(home / ".ssh")
    (home / "loop").symlink_to(home / "loop")
    (home / "wide").symlink_to("/")
    monkeypatch.setenv("HOME", str(home))
    settings = Settings(_env_file=None, data_dir=home / "stepgate" / "data")
    refused = {
        "/": "holds the home folder", "~": "is the home folder", str(home): "is the home folder",
        str(tmp_path): "holds the home folder", str(home / "wide"): "holds the home folder",
        f"{home}/docs/..": "is the home folder", "/home": "home", "/etc": "belongs to the system",
        "/etc/../etc": "belongs to the system",
        "/proc/self": "belongs to the system", "~/.ssh": "hidden", "~/.ssh/old": "hidden", "~/link": "hidden",
        "~/project/.git/hooks": "hidden", "~/stepgate": "own data", "~/stepgate/data": "own data",
        "docs": "not an absolute path", "": "not an absolute path", "~/notes.txt": "is a file", "~/none": "no folder",
        "~/loop": "not a folder path", "/a\x00b": "not a folder path",
    }  # fmt: skip
    for written, reason in refused.items():
        with pytest.raises(RootRefusedError, match=reason):
            add_root(settings, written)
    assert not settings.added_roots_path.exists()
    assert add_root(settings, "~/docs") == home / "docs"
    assert home / "docs" in settings.readable_roots


def test_folders_of_the_environment_are_final(tmp_path: Path, papers: Path) -> None:
    settings = settings_at(tmp_path, file_roots=[tmp_path / "shared"])
    with pytest.raises(RootRefusedError, match="AGENT_FILE_ROOTS names the folders"):
        add_root(settings, str(papers))
    AddedRoots(settings.added_roots_path).write([papers])
    assert [*settings.readable_roots] == [tmp_path / "shared"]


def test_a_folder_that_is_gone_can_be_removed(tmp_path: Path, papers: Path) -> None:
    settings = settings_at(tmp_path)
    add_root(settings, str(papers))
    (papers / "boats.md").unlink()
    papers.rmdir()
    assert remove_root(settings, str(papers))
    assert not remove_root(settings, str(papers))


def test_the_home_of_an_unknown_user_is_on_no_list(tmp_path: Path) -> None:
    assert not remove_root(settings_at(tmp_path), "~nobody-of-this-name/papers")
    for word in ("add", "remove"):
        code, told = stepgate(tmp_path, "file-roots", word, "~nobody-of-this-name/papers")
        assert (code, "Traceback" in told, "~nobody-of-this-name/papers" in told) == (1, False, True), told
        assert told.startswith("stepgate: "), "as every command says that it cannot be carried out"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"roots": ["docs"]}', '{"roots": 1}', json.dumps({"roots": [1]})])
def test_a_broken_list_lets_nothing_be_read(tmp_path: Path, text: str) -> None:
    saved = tmp_path / "file_roots.json"
    saved.write_text(text)
    assert [*ReadableRoots((tmp_path,), AddedRoots(saved))] == [tmp_path]


def test_folders_are_known_by_all_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, where `/etc` is a link to `/private/etc`, and where `/home` is a link to `/var/home`."""
    private, homes = tmp_path / "private", tmp_path / "var" / "home"
    for name in ("etc/ssh", "tmp/papers"):
        (private / name).mkdir(parents=True)
    (homes / "eve" / "papers").mkdir(parents=True)
    (tmp_path / "etc").symlink_to(private / "etc")
    (tmp_path / "home").symlink_to(homes)
    monkeypatch.setattr(added_roots, "_SYSTEM_FOLDERS", (tmp_path / "etc",))
    monkeypatch.setattr(added_roots, "_HOMES", (tmp_path / "home",))
    settings = settings_at(tmp_path / "gate")
    for folder, reason in {
        tmp_path / "etc": "belongs to the system", private / "etc": "belongs to the system",
        private / "etc" / "ssh": "belongs to the system", private: "holds folders of the system",
        tmp_path / "home": "whole home folder", homes / "eve": "whole home folder",
        tmp_path / "home" / "eve": "whole home folder",
    }.items():  # fmt: skip
        with pytest.raises(RootRefusedError, match=reason):
            add_root(settings, str(folder))
    assert add_root(settings, str(tmp_path / "home" / "eve" / "papers")) == homes / "eve" / "papers"
    assert add_root(settings, str(private / "tmp" / "papers")) == private / "tmp" / "papers"


@pytest.mark.parametrize("folder", ["/", "/var", "/tmp", "/usr", "/var/lib", "/proc/self/root", "/dev/shm/.."])
def test_folders_that_hold_those_of_the_system_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(RootRefusedError, match="cannot be added"):
        add_root(settings_at(tmp_path), folder)


def test_folders_with_settings_of_the_gateway_are_refused(tmp_path: Path) -> None:
    for name in ("mcp", "rooms", "secrets"):
        (tmp_path / name / "inner").mkdir(parents=True)
    settings = settings_at(
        tmp_path,
        mcp_servers=tmp_path / "mcp" / "inner" / "servers.json",
        rooms_dir=tmp_path / "rooms" / "inner",
        credentials_path=tmp_path / "secrets" / "inner" / "credentials.json",
    )
    for name in ("mcp", "mcp/inner", "rooms", "rooms/inner", "secrets"):
        with pytest.raises(RootRefusedError, match=r"settings of Stepgate|credentials"):
            add_root(settings, str(tmp_path / name))


async def test_a_folder_that_was_replaced_by_a_link_is_not_read(serve: Serve, papers: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "boats.md").write_text("the key is birch-4711")
    read = {"prompt": "", "metadata": {"tool_calls": [{"tool": "read_file", "args": {"path": "boats.md"}}]}}
    async with serve(require_key="never") as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        assert (await client.post(ROOTS, json={"path": str(papers)})).status_code == 201
        assert "ferry leaves" in (await client.post("/v1/agent", json=read)).text
        replace_by_link(papers, elsewhere)
        assert "birch-4711" not in (await client.post("/v1/agent", json=read)).text


async def test_hidden_files_below_a_root_are_not_read_by_any_way(serve: Serve, papers: Path) -> None:
    (papers / ".env").write_text("KEY=birch-4711\n")
    (papers / ".git").mkdir()
    (papers / ".git" / "config.md").write_text("KEY=birch-4711\n")
    async with serve(require_key="never", file_roots=(papers,)) as url, httpx.AsyncClient(base_url=url) as client:
        client.timeout = httpx.Timeout(30)
        for path in (".env", str(papers / ".env"), "./.git/config.md", ".git/config.md"):
            call = {"tool": "read_file", "args": {"path": path}}
            answer = (await client.post("/v1/agent", json={"prompt": "", "metadata": {"tool_calls": [call]}})).text
            assert "birch-4711" not in answer
            assert "hidden" in answer
        for hidden in (papers / ".git", papers / ".git" / "config.md", papers / ".env"):
            source = {"source_type": "local", "source_identifier": str(hidden)}
            refused = await client.post("/v1/sources", json=source)
            assert (refused.status_code, "hidden" in refused.text) == (403, True), refused.text
            refused = await client.post("/v1/collections/x/ingest", json=source)
            assert (refused.status_code, "hidden" in refused.text) == (403, True), refused.text
