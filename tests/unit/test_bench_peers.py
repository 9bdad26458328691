"""A peer that cannot be had is named with its reason, and the bench goes on without it."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.bench import peer
from tests.bench.contenders import (
    FLOOR,
    FRAMEWORKS,
    LITELLM,
    PYDANTIC_AI,
    contenders,
    list_references,
    peers,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(peer, "ROOT", tmp_path)
    peer.missing.cache_clear()
    return tmp_path


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            subprocess.CalledProcessError(1, "pip", stderr="a warning\nERROR: no network\n"),
            "no peer: ERROR: no network",
        ),
        (subprocess.CalledProcessError(1, "pip", stderr=""), "no peer: pip failed"),
        (subprocess.TimeoutExpired("pip", 600), "no peer: its installation took more than 600 s"),
        (PermissionError("read-only"), "no peer: read-only"),
    ],
)
def test_what_keeps_a_peer_from_being_installed_is_told_in_one_line(
    error: Exception, reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str]) -> None:
        (folder / ".bench").mkdir(exist_ok=True)
        raise error

    monkeypatch.setattr(peer, "_quietly", fail)
    requirements = peer.find_requirements("langgraph")
    assert peer.missing(requirements, "langchain.agents") == reason
    assert [one.name for one in contenders("turn")] == ["stepgate", "floor"]
    references = list_references("turn", {"stepgate": 4.0, "floor": 0.5})
    assert references == {FLOOR: 0.5, **dict.fromkeys(FRAMEWORKS, reason)}


def test_a_peer_is_installed_once_and_tried_before_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def install(command: list[str]) -> None:
        commands.append(command)
        if command[1:3] == ["-m", "venv"]:
            (Path(command[3]) / "bin").mkdir(parents=True)

    monkeypatch.setattr(peer, "_quietly", install)
    requirements = peer.find_requirements("litellm")
    for _ in range(2):
        assert peer.missing(requirements, "litellm") is None
        peer.missing.cache_clear()
    assert [command[1] for command in commands] == ["-m", "-m", "-c"]
    assert commands[-1][2] == "import litellm"


def test_a_proxy_is_compared_where_one_model_call_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "missing", lambda *_: None)
    assert [one.name for one in contenders("stream")] == ["stepgate", FLOOR, *FRAMEWORKS, LITELLM]
    assert [one.name for one in contenders("turn")] == ["stepgate", FLOOR, *FRAMEWORKS]
    assert [one.name for one in contenders("chain")] == ["stepgate", FLOOR, PYDANTIC_AI]


@pytest.mark.parametrize("name", [one.name for one in peers])
def test_every_package_of_a_peer_is_pinned(name: str) -> None:
    lines = peer.find_requirements(name.lower()).read_text("utf-8").splitlines()
    packages = [line for line in lines if not line.startswith("    --hash=sha256:")]
    assert all(line.partition(";")[0].count("==") == 1 for line in packages)
    assert len(packages) > 20


def test_the_version_of_a_peer_is_that_of_its_packages() -> None:
    versions = {one.name: one.version.split(", ") for one in peers}
    assert [len(listed) for listed in versions.values()] == [1, 1, 2, 1, 1]
    assert all(re.fullmatch(r"[a-z-]+ [\d.]+", text) for listed in versions.values() for text in listed)
