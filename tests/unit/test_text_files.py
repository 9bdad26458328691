"""Files that a command line names: what cannot be read is refused in words, not with a traceback."""

import io
import sys
from pathlib import Path

import pytest
import typer

from gateway.cli.text_files import read_text_file
from gateway.features.studio.commands.rooms import _parse_fields


def test_a_text_is_read_from_its_file_or_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room.yaml").write_text("name: Ö\n", "utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO("name: desk\n"))
    assert read_text_file(tmp_path / "room.yaml", "--file") == "name: Ö\n"
    assert read_text_file(Path("-"), "--file") == "name: desk\n"


def test_what_cannot_be_read_is_a_fault_of_the_option(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    faulty = {"nowhere": "No such file", "binary": "not UTF-8 text", ".": "Is a directory"}
    for name, reason in faulty.items():
        with pytest.raises(typer.BadParameter, match=reason) as refused:
            read_text_file(tmp_path / name, "--file")
        assert refused.value.param_hint == "--file"


def test_a_field_of_a_plain_value_is_refused() -> None:
    assert _parse_fields(["budgets.max_steps=5", "persona=brief"]) == {"budgets": {"max_steps": 5}, "persona": "brief"}
    with pytest.raises(typer.BadParameter, match="'persona' was given a value before"):
        _parse_fields(["persona=brief", "persona.tone=kind"])
