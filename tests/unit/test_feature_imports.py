"""What features import of each other is what their `needs` say."""

import ast
from pathlib import Path

import pytest

from gateway.feature import Feature
from gateway.feature_loader import load_features

ROOT = Path(__file__).parents[2]
FEATURES = load_features("", with_installed=False).features
NEEDS = {feature.name: feature.needs for feature in FEATURES}


def list_needed(name: str) -> set[str]:
    """The features that a feature may import: those it needs, and what these need."""
    return {name}.union(*(list_needed(need) for need in NEEDS[name]))


def list_imports(source: str) -> set[str]:
    """The features that a module imports, in functions and for types too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        found |= {module.split(".")[2] for module in modules if module.startswith("gateway.features.")}
    return found


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_feature_imports_only_those_it_needs(feature: Feature) -> None:
    allowed = list_needed(feature.name)
    for path in (ROOT / "gateway" / "features" / feature.name).rglob("*.py"):
        assert list_imports(path.read_text("utf-8")) <= allowed, path


def test_an_import_inside_of_a_function_is_seen() -> None:
    assert list_imports("def f():\n    from gateway.features.studio.parts import get_studio") == {"studio"}
