"""What features import of each other is what `needs` and `imports` say; of the gateway, its face; an engine, only
engines. And the kernel names nothing of theirs."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import Table

from agent.storage import tables
from gateway.feature import Feature
from gateway.feature_loader import load_features

ROOT = Path(__file__).parents[2]
FEATURES = load_features("", with_installed=False).features
NEEDS = {feature.name: (*feature.needs, *feature.imports) for feature in FEATURES}


def list_needed(name: str) -> set[str]:
    """The features that a feature may import: those it needs or names as imports, and what these need."""
    return {name}.union(*(list_needed(need) for need in NEEDS[name]))


def list_modules(source: str) -> set[tuple[str, ...]]:
    """The modules that a module imports, in functions and for types too, by their names."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        modules |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
        modules |= {one.name for one in node.names} if isinstance(node, ast.Import) else set()
    return {tuple(module.split(".")) for module in modules}


def list_imports(source: str) -> set[str]:
    """The features that a module imports."""
    return {module[2] for module in list_modules(source) if module[:2] == ("gateway", "features")}


def list_files(feature: Feature, folder: str = "") -> list[Path]:
    """The modules of a feature, or those of one of its folders."""
    return sorted((ROOT / "gateway" / "features" / feature.name / folder).rglob("*.py"))


FACE = {"feature", "feature_host", "access", "render", "bootstrap"}
"""What any module of a feature may import of the gateway around it. `bootstrap` gives the type of the gateway."""
FACE_IN_FOLDERS = {"doors": "doors", "cli": "commands"}
"""What only the modules in this folder of a feature may import."""
EXCEPTIONS = Counter(
    {
        "doors": 6,  # the strict models of bodies, in forms; an address
        "bootstrap_database": 3,
        "bootstrap_rooms": 2,
        "direct_model": 2,
        "garbage_collector": 2,
        "worker_process": 2,
        "bootstrap_dispatch": 1,
        "bootstrap_extensions": 1,
        "cli": 1,
        "packaged_files": 1,
        "quiet_interrupt": 1,
    }
)
"""Modules of features that import something else of the gateway, by what that is. The counts may only fall."""


def test_features_build_on_the_face_of_the_gateway() -> None:
    others: Counter[str] = Counter()
    for feature in FEATURES:
        if feature.name != "evaluation":  # it looks at everything, and is not in the wheel
            for path in list_files(feature):
                others.update(_list_others(path.parts[len(ROOT.parts) + 3], path.read_text("utf-8")))
    assert others == EXCEPTIONS


def _list_others(folder: str, source: str) -> set[str]:
    """What a module of a feature imports of the gateway beside its face."""
    around = {module[1] for module in list_modules(source) if module[0] == "gateway" and len(module) > 1}
    return {name for name in around - FACE - {"features"} if FACE_IN_FOLDERS.get(name) != folder}


def test_what_is_no_face_of_the_gateway_is_seen_by_its_place() -> None:
    assert _list_others("doors", "from gateway.doors.agent import ERRORS") == set()
    assert _list_others("tools", "from gateway.doors.agent import ERRORS") == {"doors"}
    assert _list_others("tools", "def f():\n    import gateway.live_models") == {"live_models"}


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_an_engine_imports_only_engines_of_the_gateway(feature: Feature) -> None:
    for path in list_files(feature, "engine"):
        of_gateway = {module for module in list_modules(path.read_text("utf-8")) if module[0] == "gateway"}
        assert {module for module in of_gateway if module[3:4] != ("engine",)} == set(), path


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_feature_imports_only_those_it_needs(feature: Feature) -> None:
    allowed = list_needed(feature.name)
    for path in list_files(feature):
        assert list_imports(path.read_text("utf-8")) <= allowed, path


def test_an_import_inside_of_a_function_is_seen() -> None:
    assert list_imports("def f():\n    from gateway.features.studio.parts import get_studio") == {"studio"}


FEATURE_TABLES = (
    tables.collections, tables.fleet, tables.ingestion_jobs, tables.pipeline_conversations, tables.schedules,
    tables.studio, tables.tasks, tables.webhooks,
)  # fmt: skip
"""The modules of the tables of features from before there were features."""
TABLES_OF_KERNEL = {"housekeeping", "mcp_pins", "vectors", "vector_sets"}
NAMED = {("mcp_tools/builtin/files.py", "search_knowledge")}
"""What the kernel names all the same: a description says where else to search."""


def list_tables() -> set[str]:
    """The tables of features."""
    old = {one.name for module in FEATURE_TABLES for one in vars(module).values() if isinstance(one, Table)}
    declared = {table for one in FEATURES for table in (*one.owned_tables, *one.work_tables, *one.run_tables)}
    return (old | declared) - TABLES_OF_KERNEL


def list_tools() -> set[str]:
    """The tools of features, by the toolsets that they declare."""
    return {tool for feature in FEATURES for toolset in feature.toolsets for tool in toolset.tools}


def read_words(path: Path) -> str:
    """The texts in a module, docstrings too, without its code; another file as it is."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        return text
    constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return "\n".join(value for value in constants if isinstance(value, str))


def list_named(text: str, names: set[str]) -> set[str]:
    """Those of the names that a text has: one that is a common word, too, only in SQL."""
    words = "|".join(name for name in names if "_" in name)
    return {
        *re.findall(rf"\b(?:{words})\b", text),
        *re.findall(rf"(?:FROM|INTO|UPDATE|JOIN) ({'|'.join(names)})\b", text),
    }


def test_the_kernel_names_no_tool_and_no_table_of_a_feature() -> None:
    tools, their_tables = list_tools(), list_tables()
    assert {"recipe_save", "spawn_researcher", "summarize"} <= tools
    assert {"webhook_deliveries", "chunks", "tasks", "queue_workers"} <= their_tables
    apart = [ROOT / folder for folder in ("gateway/features", "agent/storage/tables", "agent/storage/migrations")]
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for package in ("agent", "mcp_tools", "gateway")
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".md", ".toml") and not any(path.is_relative_to(folder) for folder in apart)
        for name in list_named(read_words(path), tools | their_tables)
    }
    assert named == NAMED


def test_a_common_word_is_the_name_of_a_table_only_in_sql() -> None:
    names = {"tasks", "task_runs"}
    assert list_named('"tasks" and task_runs_view', names) == set()
    assert list_named('"DELETE FROM tasks WHERE x"', names) == {"tasks"}
    assert list_named("the rows of task_runs", names) == {"task_runs"}
