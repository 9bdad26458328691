"""The soak of an upgrade says what is wrong where the older commit cannot be had."""

import sys

import pytest

from tests.soak import upgrade


def test_a_commit_that_does_not_exist_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["upgrade", "--from", "no-such-commit"])
    assert upgrade.main() == 2
    assert capsys.readouterr().out.startswith("soak-upgrade: ")


def test_a_machine_without_git_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["upgrade"])
    assert upgrade.main() == 2
    assert capsys.readouterr().out == "soak-upgrade: git is not installed\n"
