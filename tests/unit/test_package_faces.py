"""The docstring of a package names where to begin: the files and names exist. Others import tools by their package."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACES = {
    path: docstring
    for folder in ("agent", "mcp_tools", "gateway")
    for path in (ROOT / folder).rglob("__init__.py")
    if "Begin with" in (docstring := ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "")
}
FEATURE_TOOLS = sorted((ROOT / "gateway" / "features").glob("*/tools"))


def list_pairs(docstring: str) -> list[tuple[str, str]]:
    """Each name after "Begin with", with the file that was named last before it; a file alone has the name ""."""
    pairs, file = [], ""
    for word in re.findall(r"`([^`]+)`", docstring.partition("Begin with")[2]):
        if word.endswith(".py"):
            file = word
            pairs.append((file, ""))
        else:
            pairs.append((file, word))
    return pairs


def test_the_kernel_and_the_gateway_have_faces() -> None:
    assert len(FACES) >= 14


@pytest.mark.parametrize("path", FACES, ids=lambda path: path.parent.relative_to(ROOT).as_posix())
def test_a_face_names_what_exists(path: Path) -> None:
    for file, name in list_pairs(FACES[path]):
        source = path.parent / file
        assert source.is_file(), file
        if name:
            defined = re.compile(rf"^(?:(?:async )?def|class) {name}\b|^{name}(?::.*)? = ", re.MULTILINE)
            assert defined.search(source.read_text("utf-8")), (file, name)


@pytest.mark.parametrize("tools", FEATURE_TOOLS, ids=lambda path: path.parent.name)
def test_the_tools_of_a_feature_are_imported_by_their_face(tools: Path) -> None:
    package = ".".join(tools.relative_to(ROOT).parts)
    others = [path for path in tools.parent.rglob("*.py") if not path.is_relative_to(tools)]
    past_the_face = [
        f"{path.relative_to(ROOT)}: {node.module}"
        for path in others
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}.")
    ]
    assert past_the_face == []
