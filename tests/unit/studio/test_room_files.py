"""Room files on the disk: a change happens as a whole or not at all, whatever stops it."""

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.bounded_yaml import MAX_BYTES
from agent.core.errors import ConflictError, NotFoundError, StoreError, StoreFullError
from gateway.features.studio.engine.errors import RollbackRegistry, ValidationError, VersionConflictError
from gateway.features.studio.engine.room_files import FileRoomStore
from tests.support.processes import ROOT

OLD = b"# Ours\nname: Old   # for now\n"


def accept(text: str) -> None:
    """Accepts every text."""


def refuse_second(texts: list[str]) -> Callable[[str], None]:
    """A check that accepts a text before it is written and refuses it afterwards."""

    def check(text: str) -> None:
        texts.append(text)
        if len(texts) == 2:
            raise ValidationError("not like this", "check_config")

    return check


@pytest.fixture
def store(tmp_path: Path) -> FileRoomStore:
    return FileRoomStore(tmp_path / "rooms", tmp_path / "data" / "managed_rooms.json")


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


@pytest.mark.row("S002-39")
def test_operations_are_undone_in_reverse_order_and_their_errors_are_collected() -> None:
    undo, done = RollbackRegistry(), list[str]()

    def fail() -> None:
        raise OSError("gone")

    def fail_otherwise() -> None:
        raise ValueError("not a number")

    undo.register(lambda: done.append("first"))
    undo.register(fail)
    undo.register(fail_otherwise)
    undo.register(lambda: done.append("last"))
    assert undo.rollback_all() == ["not a number", "gone"], "whatever fails, the others are undone"
    assert done == ["last", "first"]
    assert undo.rollback_all() == []
    undo.register(fail)
    undo.clear()
    assert undo.rollback_all() == [], "a change that has succeeded has nothing to undo"


@pytest.mark.row("S002-35", "S002-36", "S002-39")
def test_a_text_that_fails_its_check_after_the_save_is_rolled_back_byte_for_byte(
    store: FileRoomStore, tmp_path: Path
) -> None:
    store.create("old", OLD, accept)
    before, texts = snapshot(tmp_path), list[str]()
    with pytest.raises(ValidationError, match="not like this"):
        store.edit("old", lambda _: "name: New\n", refuse_second(texts), version=None, managed=False)
    assert texts == ["name: New\n"] * 2
    assert snapshot(tmp_path) == before
    with pytest.raises(ValidationError, match="not like this"):
        store.create("new", b"name: New\n", refuse_second([]))
    assert snapshot(tmp_path) == before


def test_a_disk_that_is_full_changes_nothing(store: FileRoomStore, tmp_path: Path) -> None:
    store.create("old", OLD, accept)
    before = snapshot(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(StoreFullError, match="nothing was changed") as edited:
            store.edit("old", lambda _: "#" * 50_000, accept, version=None)
        with pytest.raises(StoreFullError):
            store.create("new", b"#" * 50_000, accept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert snapshot(tmp_path) == before
    assert edited.value.details["stage"] == "write"
    assert edited.value.to_failure().recoverable


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_changes_nothing(store: FileRoomStore, tmp_path: Path) -> None:
    store.create("old", OLD, accept)
    before = snapshot(tmp_path)
    store.folder.chmod(0o500)
    try:
        with pytest.raises(StoreError):
            store.edit("old", lambda _: "name: New\n", accept, version=None)
        with pytest.raises(StoreError):
            store.delete("old", version=None)
    finally:
        store.folder.chmod(0o700)
    assert snapshot(tmp_path) == before


def test_the_second_of_two_writers_gets_a_conflict(store: FileRoomStore) -> None:
    read = store.create("old", OLD, accept)
    store.edit("old", lambda text: text + "persona: brief\n", accept, version=read.version)
    with pytest.raises(VersionConflictError, match="read it again"):
        store.edit("old", lambda _: "name: Mine\n", accept, version=read.version)
    with pytest.raises(VersionConflictError):
        store.delete("old", version=read.version)
    assert (stored := store.read("old")) is not None
    assert stored.data == OLD + b"persona: brief\n"


def test_a_person_who_saves_the_file_during_an_edit_is_not_overwritten(store: FileRoomStore) -> None:
    store.create("old", OLD, accept)

    def save_by_hand(text: str) -> str:
        (store.folder / "old.yaml").write_text("name: By hand\n")
        return text + "persona: brief\n"

    with pytest.raises(VersionConflictError):
        store.edit("old", save_by_hand, accept, version=None)
    assert (store.folder / "old.yaml").read_text() == "name: By hand\n"


def test_twenty_writers_at_once_lose_no_update(store: FileRoomStore) -> None:
    store.create("old", b"# begin\n", accept)
    barrier = threading.Barrier(20)

    def append(number: int) -> None:
        barrier.wait()
        FileRoomStore(store.folder, store._marks).edit("old", lambda text: f"{text}# {number}\n", accept, version=None)

    threads = [threading.Thread(target=append, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (store.folder / "old.yaml").read_text().splitlines()
    assert sorted(lines) == sorted(["# begin", *(f"# {number}" for number in range(20))])


@pytest.mark.row("S002-09")
def test_marks_are_kept_outside_of_the_rooms_and_go_with_the_file(store: FileRoomStore, tmp_path: Path) -> None:
    store.create("ours", OLD, accept)
    (store.folder / "theirs.yaml").write_bytes(OLD)
    assert {name: stored.is_managed for name in ("ours", "theirs") if (stored := store.read(name))} == {
        "ours": True,
        "theirs": False,
    }
    assert (store.folder / "ours.yaml").read_bytes() == OLD
    marks = tmp_path / "data" / "managed_rooms.json"
    assert list(json.loads(marks.read_text())) == ["ours"]
    (store.folder / "ours.yaml").unlink()
    store.create("next", OLD, accept)
    assert list(json.loads(marks.read_text())) == ["next"], "a mark without a file is forgotten"


def test_a_damaged_file_of_marks_stops_changes_with_what_to_do(store: FileRoomStore, tmp_path: Path) -> None:
    store.create("old", OLD, accept)
    (tmp_path / "data" / "managed_rooms.json").write_text("{")
    with pytest.raises(StoreError, match="correct it, or remove it"):
        store.edit("old", lambda _: "name: New\n", accept, version=None)
    assert (store.folder / "old.yaml").read_bytes() == OLD


def test_unknown_rooms_existing_ids_and_huge_files_are_refused(store: FileRoomStore) -> None:
    with pytest.raises(NotFoundError):
        store.edit("none", lambda text: text, accept, version=None)
    store.create("old", OLD, accept)
    with pytest.raises(ConflictError, match="choose another id"):
        store.create("old", b"name: Mine\n", accept)
    (store.folder / "old.yaml").write_bytes(b"#" * 10_000_000)
    assert (stored := store.read("old")) is not None
    assert len(stored.data) == MAX_BYTES + 1
    with pytest.raises(ValidationError, match="at most 262,144 bytes"):
        store.edit("old", lambda text: text, accept, version=None)


_CRASHING = """
import os, sys
from pathlib import Path
from gateway.features.studio.engine.room_files import FileRoomStore

def change(folder, left):
    def die_in_time(event, _):
        nonlocal left
        if event in ("os.rename", "os.remove", "open", "os.mkdir"):
            left -= 1
            if left == 0:
                os._exit(9)

    store = FileRoomStore(folder / "rooms", folder / "data" / "managed_rooms.json")
    sys.addaudithook(die_in_time)
    if sys.argv[1] == "edit":
        store.edit("old", lambda _: "name: New\\n", lambda _: None, version=None)
    elif sys.argv[1] == "delete":
        store.delete("old", version=None)
    else:
        store.create("new", b"name: New\\n", lambda _: None)
    os._exit(0)

for folder in sys.argv[2:]:
    pid = os.fork()
    if pid == 0:
        change(Path(folder), int(Path(folder).name))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
MAX_OPERATIONS = 40
"""More operations on the file system than any change takes."""


@pytest.mark.parametrize("change", ["edit", "delete", "create"])
def test_a_crash_at_any_operation_leaves_the_old_or_the_new_file(tmp_path: Path, change: str) -> None:
    """The process ends before its n-th operation on the file system, for each n until it gets through."""
    name = "new" if change == "create" else "old"
    new = b"name: New\n"
    by_change: dict[str, set[bytes | None]] = {"edit": {OLD, new}, "delete": {OLD, None}, "create": {new, None}}
    allowed, outcomes = by_change[change], set[bytes | None]()
    folders = [tmp_path / str(operation) for operation in range(1, MAX_OPERATIONS)]
    for folder in folders:
        FileRoomStore(folder / "rooms", folder / "data" / "managed_rooms.json").create("old", OLD, accept)
    done = subprocess.run(
        [sys.executable, "-c", _CRASHING, change, *folders],
        cwd=ROOT, check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    codes = [int(line) for line in done.stdout.split()]
    for folder in folders:
        path = folder / "rooms" / f"{name}.yaml"
        outcomes.add(path.read_bytes() if path.exists() else None)
        assert outcomes <= allowed
        # The store works after the crash: nothing is locked, and what was left behind does not count as a room.
        store = FileRoomStore(folder / "rooms", folder / "data" / "managed_rooms.json")
        assert set(store.list_stamps() or ()) <= {"old", "new"}
        store.create("next", b"name: Next\n", accept)
    crashed = codes.index(0)
    assert crashed > 3
    assert codes == [9] * crashed + [0] * (len(folders) - crashed)
    assert outcomes == allowed
