"""A backup is taken while the gateway runs, and put back after whatever happened."""

import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.support.processes import DEADLINE_S, GatewayProcess, start


def stepgate(data: Path, *words: str) -> tuple[int, str]:
    """Exit code and output of a command on a data folder."""
    process = start([sys.executable, "-m", "gateway", *words], environment={"AGENT_DATA_DIR": str(data)})
    code = process.wait(60)
    return code, "\n".join(process.output)


def ask(url: str, number: int) -> None:
    answer = httpx.post(f"{url}/v1/agent", json={"prompt": f"/calculator {number}+0"}, timeout=DEADLINE_S)
    assert answer.status_code == 200, answer.text


def runs(url: str) -> int:
    return len(httpx.get(f"{url}/v1/runs?limit=200", timeout=DEADLINE_S).json()["data"])


def test_what_was_backed_up_is_what_is_restored_though_the_gateway_was_killed(tmp_path: Path) -> None:
    data, saved = tmp_path / "data", tmp_path / "saved"
    with GatewayProcess(data) as gateway:
        ask(gateway.url, 1)
        files = {"file": ("a.txt", b"The budget is 4200.")}
        sent = httpx.post(f"{gateway.url}/v1/documents", files=files, timeout=DEADLINE_S).json()
        data.chmod(0o755)  # as somebody else has made it
        (data / "mcp_servers.json").write_text('{"mcpServers": {}}')
        assert stepgate(data, "backup", str(saved)) == (0, f"{data} is backed up in {saved}")
        for number in range(30):
            ask(gateway.url, number)
        code, told = stepgate(data, "restore", str(saved))
        assert code == 1
        assert "stop the gateway first" in told
        assert runs(gateway.url) == 31, "nothing was changed"
    assert (data / "stepgate.db-wal").stat().st_size > 0, "killed: what it wrote last is in the log beside"
    (data / "mcp_servers.json").unlink()
    code, told = stepgate(data, "restore", str(saved))
    assert code == 0, told
    assert not (data / "stepgate.db-wal").exists()
    with GatewayProcess(data) as gateway:
        assert runs(gateway.url) == 1
        again = httpx.get(f"{gateway.url}/v1/documents/{sent['document_id']}/file", timeout=DEADLINE_S)
    assert again.text == "The budget is 4200."
    assert (data / "mcp_servers.json").exists()
    (aside,) = data.glob("replaced-*")
    with closing(sqlite3.connect(aside / "stepgate.db")) as there:
        assert there.execute("SELECT count(*) FROM runs").fetchone() == (31,)
    for secret in (saved, saved / "stepgate.db", aside):
        assert stat.S_IMODE(secret.stat().st_mode) & 0o077 == 0


def test_a_damaged_database_is_replaced_and_a_damaged_backup_is_not_taken(tmp_path: Path) -> None:
    data, saved = tmp_path / "data", tmp_path / "saved"
    with GatewayProcess(data) as gateway:
        ask(gateway.url, 1)
        assert stepgate(data, "backup", str(saved))[0] == 0
    for part in data.glob("stepgate.db*"):
        part.write_bytes(b"not a database any more" * 400)
    assert stepgate(data, "restore", str(saved))[0] == 0
    (saved / "stepgate.db").write_bytes(b"nor is this" * 800)
    code, told = stepgate(data, "restore", str(saved))
    assert (code, "nothing was changed" in told) == (1, True)
    with GatewayProcess(data) as gateway:
        assert runs(gateway.url) == 1


@pytest.mark.parametrize("where", ["data/inside", "there"])
def test_a_backup_overwrites_nothing(tmp_path: Path, where: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "there").mkdir()
    code, told = stepgate(tmp_path / "data", "backup", str(tmp_path / where))
    assert code == 1
    assert "name a folder that does not exist yet" in told
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "data", tmp_path / "there"]


def test_what_is_no_backup_is_not_restored(tmp_path: Path) -> None:
    code, told = stepgate(tmp_path / "data", "restore", str(tmp_path))
    assert (code, "`stepgate backup`" in told) == (1, True)


def test_the_data_folder_is_not_restored_from_itself(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert stepgate(data, "migrate")[0] == 0
    code, told = stepgate(data, "restore", str(data))
    assert (code, "is the data folder itself" in told) == (1, True), told
    assert (data / "stepgate.db").is_file()
    assert not [*data.glob("replaced-*")]


def test_a_backup_that_fails_leaves_nothing_that_looks_like_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert stepgate(data, "migrate")[0] == 0
    (data / "stepgate.db").write_bytes(b"this was a database once" * 400)
    code, told = stepgate(data, "backup", str(tmp_path / "saved"))
    assert (code, "cannot be copied" in told) == (1, True), told
    assert not (tmp_path / "saved").exists()


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert stepgate(data, "migrate")[0] == 0
    (tmp_path / "file").write_text("")
    code, told = stepgate(data, "backup", str(tmp_path / "file" / "saved"))
    assert code == 1
    assert told.splitlines() == [f"stepgate: {tmp_path}/file/saved: Not a directory"]
