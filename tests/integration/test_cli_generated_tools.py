"""`stepgate tools generate|apply|...`: the life of a generated tool on the command line."""

from pathlib import Path

import pytest

from tests.integration.test_cli import stepgate
from tests.support.sandboxes import requires_sandbox
from tests.support.script import script
from tests.support.scripted_server import ScriptedServer
from tests.support.tool_scripts import ToolScript

pytestmark = requires_sandbox
NAME = "convert_part_number"


@pytest.mark.row("S002-18")
def test_a_tool_is_generated_applied_called_and_removed(tmp_path: Path, model_server: ScriptedServer) -> None:
    model_server.load(script(*ToolScript().rules()))
    settings = {"llm_base_url": model_server.url, "model_fast": "small"}
    code, output = stepgate(tmp_path, "tools", "generate", "Convert our part numbers.", **settings)
    assert code == 0, output
    assert f"{NAME}, version 1, staged" in output
    assert stepgate(tmp_path, "tools", "call", NAME, "number=A-12")[0] == 1, "it is only staged"
    assert stepgate(tmp_path, "tools", "apply", NAME, "--yes")[0] == 0
    assert "12A" in stepgate(tmp_path, "tools", "call", NAME, "number=A-12")[1]
    code, output = stepgate(tmp_path, "tools", "discard", NAME)
    assert (code, "(stage: state)" in output) == (1, True), output
    assert stepgate(tmp_path, "tools", "remove", NAME, "--yes") == (0, f"{NAME} is deleted (1 version).")
    assert stepgate(tmp_path, "tools", "show", NAME)[0] == 1
    refused = stepgate(tmp_path, "tools", "generate", "Convert our part numbers.")
    assert refused == (1, "no model is configured; choose one with `stepgate models use`"), "and nothing about progress"
