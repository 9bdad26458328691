"""What programs and people see of the gateway, byte for byte as recorded, and how much code one request takes."""

from pathlib import Path

from tests.support.floors import find_longest_chain
from tests.support.scripted_server import ScriptedServer
from tests.support.surfaces import compare, render_help, render_mcp_lists, render_openapi
from tests.support.traced_turn import trace_turn

HOW = "\nif the change is meant: python -m tests.support.surfaces --record"
MAX_FILES = 150
CACHED = "agent/storage/api_keys.py"
"""Not counted: whether there is any key is looked up again after two seconds, so it runs on a slow machine only."""
MAX_PACKAGES = 22
"""Folders that hold one of these files. The aim is 16."""
MAX_NAMED_PACKAGES = 16
"""Packages that the import contracts in pyproject.toml name: `agent.policy` is one, with its three folders."""
MAX_FLOORS = 7
"""Packages on the longest chain of imports from a door down. The contract in pyproject.toml draws four floors."""


def test_the_openapi_document_is_the_recorded_one() -> None:
    difference = compare("openapi.json", render_openapi())
    assert not difference, difference + HOW


async def test_the_lists_of_the_mcp_server_are_the_recorded_ones(tmp_path: Path) -> None:
    difference = compare("mcp.json", await render_mcp_lists(tmp_path))
    assert not difference, difference + HOW


def test_the_helps_of_all_commands_are_the_recorded_ones() -> None:
    difference = compare("help.txt", render_help())
    assert not difference, difference + HOW


async def test_one_completion_with_one_tool_call_runs_through_few_files(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    turn = await trace_turn(tmp_path, model_server)
    assert "agent/execution/tool_gateway.py" in turn.files
    assert "mcp_tools/builtin/calculator.py" in turn.files
    assert turn.features == (), "a feature that a request does not concern runs no code"
    assert len({*turn.files} - {CACHED}) <= MAX_FILES
    assert len(turn.packages) <= MAX_PACKAGES
    assert len({"/".join(file.split("/")[:2]) for file in turn.files}) <= MAX_NAMED_PACKAGES


def test_a_door_stands_on_few_floors() -> None:
    chain = find_longest_chain("gateway.doors")
    assert chain[0] == "gateway.doors"
    assert chain[-1] == "agent.core"
    assert len(chain) <= MAX_FLOORS, " -> ".join(chain)


def test_a_chain_through_packages_that_import_each_other_is_counted_once(tmp_path: Path) -> None:
    imports = {"doors": ["access"], "access": ["render", "doors"], "render": ["core"], "core": []}
    for name, others in imports.items():
        (tmp_path / "app" / name).mkdir(parents=True)
        (tmp_path / "app" / name / "__init__.py").touch()
        lines = [f"from app.{other} import thing" for other in others]
        lines += ["if TYPE_CHECKING:", "    import app.unseen", "def f() -> None:", "    import app.late"]
        (tmp_path / "app" / name / "module.py").write_text("\n".join(lines))
    for name in ("unseen", "late"):
        (tmp_path / "app" / name).mkdir()
        (tmp_path / "app" / name / "__init__.py").touch()
    assert find_longest_chain("app.doors", ("app",), tmp_path) == ["app.doors", "app.access", "app.render", "app.core"]
