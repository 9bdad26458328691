"""`stepgate mcp install`: each client's entry in its own file, and files that are left as they are."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.cli import app
from gateway.ide_config import CLIENTS, Entry, install_entry
from tests.support.processes import ROOT, GatewayProcess

runner = CliRunner()
FILES = {
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers"),
    "claude-code": (".claude.json", "mcpServers"),
    "zed": (".config/zed/settings.json", "context_servers"),
    "lm-studio": (".lmstudio/mcp.json", "mcpServers"),
    "windsurf": (".codeium/windsurf/mcp_config.json", "mcpServers"),
    "gemini-cli": (".gemini/settings.json", "mcpServers"),
}
ADDRESS_FIELDS = {"windsurf": "serverUrl", "gemini-cli": "httpUrl"}
"""The field of the address where it is not `url`, under which these two read nothing or another transport."""
URL = "http://127.0.0.1:9999/mcp"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_PORT", "9999")
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "STEPGATE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("client", sorted(FILES))
def test_each_client_gets_its_entry_and_keeps_its_others(home: Path, client: str) -> None:
    name, key = FILES[client]
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    other = '{\n    "zz": [1,  2],\n    "' + key + '": {\n        "mine": {"command":   "x"}\n    }\n}\n'
    path.write_text(other)
    path.chmod(0o640)
    first = runner.invoke(app, ["mcp", "install", client])
    written = path.read_text()
    again = runner.invoke(app, ["mcp", "install", client])
    assert first.exit_code == again.exit_code == 0, first.output
    assert "was added to" in first.output
    assert "is already in" in again.output
    assert path.read_text() == written
    assert written.startswith(other.removesuffix("\n    }\n}\n"))
    assert path.stat().st_mode & 0o777 == 0o640
    entry = json.loads(written)[key]["stepgate"]
    if client == "claude-desktop":
        assert Path(entry["command"]).is_absolute()
        assert entry["args"] == ["mcp"]
        assert Path(entry["env"]["AGENT_DATA_DIR"]).is_absolute()
    else:
        kind = {"type": "http"} if client in ("vscode", "claude-code") else {}
        assert entry == {**kind, ADDRESS_FIELDS.get(client, "url"): URL}


def test_an_entry_has_the_address_at_which_the_gateway_runs(home: Path, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data") as gateway:  # at another port than AGENT_PORT
        done = runner.invoke(app, ["mcp", "install", "cursor"])
        assert done.exit_code == 0, done.output
        path = home / ".cursor" / "mcp.json"
        assert json.loads(path.read_text())["mcpServers"]["stepgate"] == {"url": f"{gateway.url}/mcp"}
        assert "No gateway answers" not in done.output
        assert "Start the gateway" not in done.output
        shown = runner.invoke(app, ["mcp", "install", "cursor", "--print", "--url", "http://10.0.0.7:8010"])
        assert "http://10.0.0.7:8010/mcp" in shown.output
    after = runner.invoke(app, ["mcp", "install", "cursor", "--force"])
    assert json.loads(path.read_text())["mcpServers"]["stepgate"] == {"url": URL}, "its note is not believed then"
    assert "No gateway answers at http://127.0.0.1:9999 now" in after.output
    assert "--url" in after.output


@pytest.mark.parametrize(
    "noted", [b"", b"not an address", b"http://127.0.0.1", b"http://[::1", b"file:///etc/passwd", b"\xff"]
)
def test_a_damaged_note_of_the_address_is_passed_over(home: Path, tmp_path: Path, noted: bytes) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "address").write_bytes(noted)
    done = runner.invoke(app, ["mcp", "install", "cursor", "--print"])
    assert (done.exit_code, URL in done.output) == (0, True), done.output


@pytest.mark.parametrize("client", sorted(FILES))
def test_the_page_shows_the_entry_of_the_default_gateway(client: str) -> None:
    page = (ROOT / "docs" / "ides" / f"{client}.md").read_text("utf-8")
    (shown, *_) = re.findall(r"```json\n(\{.*?)```", page, re.DOTALL)
    entry = json.loads(shown)[FILES[client][1]]["stepgate"]
    chosen = CLIENTS[client]
    if chosen.takes_urls:
        assert entry == chosen.build(Entry(url=f"http://127.0.0.1:{Settings.model_fields['port'].default}/mcp"))
    else:
        assert entry.keys() == chosen.build(Entry(command=("x", "mcp"), env={"AGENT_DATA_DIR": "d"})).keys()
    assert f"stepgate mcp install {client}" in page


@pytest.mark.parametrize(
    ("client", "value"),
    [
        ("cursor", "Bearer ${env:STEPGATE_API_KEY}"),
        ("vscode", "Bearer ${input:stepgate-api-key}"),
        ("claude-code", "Bearer ${STEPGATE_API_KEY}"),
        ("zed", "Bearer sk-1"),
        ("lm-studio", "Bearer sk-1"),
        ("windsurf", "Bearer ${env:STEPGATE_API_KEY}"),
        ("gemini-cli", "Bearer ${STEPGATE_API_KEY}"),
    ],
)
def test_a_key_is_referred_to_where_the_client_can_resolve_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, client: str, value: str
) -> None:
    monkeypatch.setenv("STEPGATE_API_KEY", "sk-1")
    done = runner.invoke(app, ["mcp", "install", client, "--key", "--url", "https://gate.example"])
    assert done.exit_code == 0, done.output
    name, key = FILES[client]
    data = json.loads((home / name).read_text())
    assert data[key]["stepgate"][ADDRESS_FIELDS.get(client, "url")] == "https://gate.example/mcp"
    assert data[key]["stepgate"]["headers"] == {"Authorization": value}
    assert [one["id"] for one in data.get("inputs", [])] == (["stepgate-api-key"] if client == "vscode" else [])


def test_projects_toolsets_names_and_printing(home: Path) -> None:
    words = ["mcp", "install", "vscode", "--project", str(home), "--toolsets", "default,studio", "--name", "gate"]
    assert runner.invoke(app, words).exit_code == 0
    servers = json.loads((home / ".vscode" / "mcp.json").read_text())["servers"]
    assert servers == {"gate": {"type": "http", "url": URL + "?toolsets=default,studio"}}
    shown = runner.invoke(app, ["mcp", "install", "cursor", "--print", "--stdio"])
    assert json.loads(shown.stdout)["mcpServers"]["stepgate"]["args"] == ["mcp"]
    assert not (home / ".cursor").exists()


def test_another_entry_of_the_name_is_replaced_only_by_force(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"stepgate": {"url": "http://other/mcp"}}}')
    refused = runner.invoke(app, ["mcp", "install", "cursor"])
    assert refused.exit_code == 1
    assert "--force" in str(refused.exception)
    assert "other" in path.read_text()
    assert runner.invoke(app, ["mcp", "install", "cursor", "--force"]).exit_code == 0
    assert json.loads(path.read_text()) == {"mcpServers": {"stepgate": {"url": URL}}}


@pytest.mark.parametrize(
    ("client", "content"),
    [
        ("cursor", b'{"mcpServers": {},}'),
        ("cursor", b"// mine\n{}"),
        ("cursor", b'{"mcpServers": []}'),
        ("cursor", b'{"mcpServers": {"a": '),
        ("cursor", b"\xff\xfe{\x00}\x00"),
        ("vscode", b'{"servers": {}, "inputs": {}}'),
        ("zed", b"[]"),
        ("zed", b'{"context_servers": {} /* open'),
    ],
)
def test_a_file_that_the_client_could_not_read_is_left_as_it_is(tmp_path: Path, client: str, content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="it was not changed"):
        install_entry(CLIENTS[client], path, "stepgate", Entry(url=URL, key_variable="K", key="v"))
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["file.json"]


def test_comments_byte_order_marks_and_links_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.json", tmp_path / "settings.json"
    real.write_bytes('\ufeff// Zed\r\n{\r\n  // mine\r\n  "vim_mode": true,\r\n}\r\n'.encode())
    link.symlink_to(real)
    assert install_entry(CLIENTS["zed"], link, "stepgate", Entry(url=URL)).outcome == "added"
    written = real.read_bytes().decode()
    assert link.is_symlink()
    assert written.startswith('\ufeff// Zed\r\n{\r\n  // mine\r\n  "vim_mode": true,\r\n  "context_servers": {\r\n')
    assert "\n" not in written.replace("\r\n", "")


def test_a_read_only_file_is_left_as_it_is(tmp_path: Path) -> None:
    path, link = tmp_path / "settings.json", tmp_path / "link.json"
    path.write_text("{}")
    path.chmod(0o444)
    link.symlink_to(path)
    for named in (path, link):
        with pytest.raises(ConfigError, match=r"settings\.json is read-only.*by hand"):
            install_entry(CLIENTS["cursor"], named, "stepgate", Entry(url=URL))
    assert path.read_text() == "{}"
    path.write_text('{"mcpServers": {"stepgate": {"url": "' + URL + '"}}}')
    assert install_entry(CLIENTS["cursor"], path, "stepgate", Entry(url=URL)).outcome == "unchanged"


@pytest.mark.parametrize("client", sorted(FILES))
@pytest.mark.parametrize("content", ["", "\n", " \r\n\t\r\n", "\ufeff", "\ufeff\n"])
def test_an_empty_file_gets_the_entry(tmp_path: Path, client: str, content: str) -> None:
    path = tmp_path / "empty.json"
    path.write_bytes(content.encode())
    entry = Entry(url=URL, command=("stepgate", "mcp"))
    assert install_entry(CLIENTS[client], path, "stepgate", entry).outcome == "added"
    written = path.read_bytes().decode()
    assert written.startswith("\ufeff") == content.startswith("\ufeff")
    assert json.loads(written.removeprefix("\ufeff"))[FILES[client][1]].keys() == {"stepgate"}
    assert install_entry(CLIENTS[client], path, "stepgate", entry).outcome == "unchanged"


@pytest.mark.parametrize("client", [name for name, chosen in CLIENTS.items() if chosen.comments])
@pytest.mark.parametrize("content", ["// nothing yet\n", "/* a\n b */", "\ufeff// x\r\n// y", "//"])
def test_a_file_of_comments_gets_the_entry_below_them(tmp_path: Path, client: str, content: str) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content.encode())
    assert install_entry(CLIENTS[client], path, "stepgate", Entry(url=URL)).outcome == "added"
    written = path.read_bytes().decode()
    assert written.startswith(content.rstrip() + "\n{")
    assert json.loads(written.removeprefix(content.rstrip()))[FILES[client][1]].keys() == {"stepgate"}


@pytest.mark.parametrize("client", sorted(FILES))
def test_null_is_read_as_an_empty_object(tmp_path: Path, client: str) -> None:
    path, key = tmp_path / "settings.json", FILES[client][1]
    path.write_text('{"a": null, "' + key + '": null, "inputs": null}')
    entry = Entry(url=URL, command=("stepgate", "mcp"), key_variable="K", key="v")
    assert install_entry(CLIENTS[client], path, "stepgate", entry).outcome == "added"
    data = json.loads(path.read_text())
    assert data["a"] is None
    assert data[key].keys() == {"stepgate"}
    assert install_entry(CLIENTS[client], path, "stepgate", entry).outcome == "unchanged"


def test_without_a_client_those_that_there_are_are_listed(home: Path) -> None:
    listed = runner.invoke(app, ["mcp", "install"])
    assert listed.exit_code != 0
    assert [client for client in CLIENTS if client not in listed.output] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["claude-desktop", "--url", "http://x/mcp"], "only starts programs"),
        (["cursor", "--url", "http://x/mcp", "--stdio"], "choose either"),
        (["cursor", "--stdio", "--key"], "needs no key"),
        (["zed", "--key"], "reads no variables"),
        (["claude-desktop", "--project", "."], "no file for projects"),
        (["cursor", "--url", "gate.example"], "is not an address"),
    ],
)
def test_what_cannot_be_is_refused(home: Path, words: list[str], said: str) -> None:
    refused = runner.invoke(app, ["mcp", "install", *words])
    assert refused.exit_code != 0
    assert said in str(refused.exception)
    assert list(home.rglob("*.json")) == []
