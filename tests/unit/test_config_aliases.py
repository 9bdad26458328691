"""The names other orchestrators have for our settings: both work, ours wins, and the reference lists them."""

from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.core.settings.aliases import ALIASES, list_alias_names, list_removed_names
from agent.core.settings.constants import ConstantSettings
from agent.core.settings.derived import DerivedSettings
from agent.core.settings.loading import find_unknown_settings, load_settings
from gateway.settings_reference_page import FIRST, SUBJECTS, build_settings_page


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `.env` of the folder the tests are run from."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.row("S004-52")
@pytest.mark.parametrize("prefix", ["AGENT_ORCHESTRATOR_", "ORCHESTRATOR_"])
def test_either_name_is_read(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    monkeypatch.setenv(f"{prefix}DATABASE_URL", "postgresql://here/db")
    monkeypatch.setenv(f"{prefix}PLANNER_MODE", "deterministic")
    monkeypatch.setenv(f"{prefix}EXECUTOR_MODE", "llm")
    monkeypatch.setenv(f"{prefix}TOOL_TIMEOUT_S", "7")
    monkeypatch.setenv(f"{prefix}LLM_MODEL", "llama3.1")
    settings = load_settings()
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://here/db"
    assert (settings.planner_mode, settings.executor_mode) == ("rules", "llm")
    assert (settings.tool_timeout_s, settings.model_fast) == (7, "llama3.1")


def test_our_own_name_wins_and_the_longer_alias_before_the_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATOR_TOOL_TIMEOUT_S", "7")
    assert load_settings().tool_timeout_s == 7
    monkeypatch.setenv("AGENT_ORCHESTRATOR_TOOL_TIMEOUT_S", "8")
    assert load_settings().tool_timeout_s == 8
    Path(".env").write_text("AGENT_TOOL_TIMEOUT_S=9\n")
    assert load_settings().tool_timeout_s == 9
    monkeypatch.setenv("AGENT_TOOL_TIMEOUT_S", "10")
    assert load_settings().tool_timeout_s == 10


def test_an_alias_may_stand_in_the_env_file_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("ORCHESTRATOR_PLANNER_MODE=llm\n")
    monkeypatch.setenv("AGENT_ORCHESTRATOR_PLANNER_MODE", " ")
    assert load_settings().planner_mode == "llm"


def test_a_wrong_value_is_told_by_our_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRATOR_PLANNER_MODE", "magic")
    with pytest.raises(ConfigError, match=r"^AGENT_PLANNER_MODE: must be one of auto, llm, rules, not 'magic'$"):
        load_settings()


def test_a_key_of_the_shell_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    assert load_settings().llm_api_key is None


def test_aliases_are_known_documented_and_lead_to_settings(tmp_path: Path) -> None:
    assert set(ALIASES.values()) <= set(Settings.model_fields)
    assert find_unknown_settings(dict.fromkeys(list_alias_names(), "x"), tmp_path / "none") == []
    assert find_unknown_settings({"AGENT_ORCHESTRATOR_PLANER_MODE": "x"}, tmp_path / "none") != []
    table = build_settings_page()
    assert [name for name in list_alias_names() if f"`{name}`" not in table] == []


def test_a_name_without_a_counterpart_is_told_with_what_there_is_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_ORCHESTRATOR_RAG_RETRIEVAL_MODE", "lexical")
    assert load_settings().retrieval_mode == "lexical"
    environment = {"ORCHESTRATOR_RAG_INDEX_PATH": "x", "AGENT_ORCHESTRATOR_CHROMA_COLLECTION": "y"}
    index, chroma = sorted(find_unknown_settings(environment), reverse=True)
    assert index.startswith("ORCHESTRATOR_RAG_INDEX_PATH has no effect: issues are in a collection: `stepgate")
    assert chroma.startswith("AGENT_ORCHESTRATOR_CHROMA_COLLECTION has no effect: every collection has its own vectors")
    assert "`AGENT_ORCHESTRATOR_CHROMA_COLLECTION`: every collection" in build_settings_page()


def test_no_variable_sets_a_constant_and_a_program_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_FETCH_TIMEOUT_S", "1")
    Path(".env").write_text("AGENT_MAX_MESSAGES=1\n")
    settings = load_settings()
    assert (settings.fetch_timeout_s, settings.max_messages) == (20, 2000)
    assert load_settings(max_messages=3).max_messages == 3


def test_a_removed_name_is_reported_with_what_replaces_it(tmp_path: Path) -> None:
    removed = list_removed_names()
    assert "AGENT_PLANNER_ANSWER" in removed
    fixed = {*ConstantSettings.model_fields, *DerivedSettings.model_fields}
    assert removed.keys() >= {f"AGENT_{name.upper()}" for name in fixed}
    lines = find_unknown_settings(dict.fromkeys(removed, "1"), tmp_path / "none")
    assert lines == [f"{name} has no effect: {instead}" for name, instead in sorted(removed.items())]
    assert "AGENT_FETCH_TIMEOUT_S has no effect: it is fixed at 20" in lines


def test_the_page_has_each_setting_under_one_subject_and_ten_first() -> None:
    named = [name for subject in SUBJECTS.values() for name in subject.model_fields]
    unnamed = [*ConstantSettings.model_fields, *DerivedSettings.model_fields]
    assert sorted([*named, *unnamed]) == sorted(Settings.model_fields)
    assert len(FIRST) == 10
    page = build_settings_page()
    assert page.count("| `AGENT_HOST` |") == 2
    assert "| `AGENT_FETCH_TIMEOUT_S` | it is fixed at 20 |" in page


def test_standard_variables_are_read_and_our_former_names_are_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENT_OBJECTS_REGION", "eu-west-9")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all:9000")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3-secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    settings = load_settings()
    assert (settings.objects_endpoint, settings.objects_region) == ("http://all:9000", None)
    assert settings.otel_endpoint == "http://collector:4318"
    assert "s3-secret" in settings.list_secrets(), "it is removed from answers and logs like ours"
    assert ("AWS_SECRET_ACCESS_KEY", True) in settings.list_secret_settings()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://minio:9000")
    assert load_settings().objects_endpoint == "http://minio:9000"
    lines = find_unknown_settings({"AGENT_OBJECTS_REGION": "x", "AWS_REGION": "x"}, tmp_path / "none")
    assert lines == ["AGENT_OBJECTS_REGION has no effect: set AWS_REGION"]


def test_the_secret_of_the_store_may_be_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    (tmp_path / "secret").write_text("from-a-file\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY_FILE", str(tmp_path / "secret"))
    settings = load_settings()
    assert settings.objects_secret is not None
    assert settings.objects_secret.get_secret_value() == "from-a-file"


def test_the_executor_works_as_the_planner_does_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().executor_mode == "auto"
    monkeypatch.setenv("AGENT_EXECUTOR_MODE", "llm")
    monkeypatch.setenv("AGENT_PLANNER_MODE", "deterministic")
    settings = load_settings()
    assert (settings.planner_mode, settings.executor_mode) == ("rules", "rules"), "the former name has no effect"
    monkeypatch.setenv("ORCHESTRATOR_EXECUTOR_MODE", "auto")
    assert load_settings().executor_mode == "auto"
    monkeypatch.delenv("AGENT_PLANNER_MODE")
    monkeypatch.setenv("ORCHESTRATOR_PLANNER_MODE", "rules")
    monkeypatch.delenv("ORCHESTRATOR_EXECUTOR_MODE")
    assert load_settings().executor_mode == "rules"
    assert load_settings(executor_mode="llm").executor_mode == "llm"


def test_files_are_in_the_data_folder_whatever_former_names_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MCP_SERVERS", "MCP_VIEWS_DIR", "CREDENTIALS_PATH", "TASK_ROOM", "RUN_PYTHON_TIMEOUT_S"):
        monkeypatch.setenv(f"AGENT_{name}", "5")
    settings = load_settings(data_dir=Path("d"))
    assert settings.mcp_servers_path == Path("d/mcp_servers.json")
    assert settings.mcp_views_path == Path("d/mcp_views")
    assert settings.credentials_file == Path("d/credentials.json")
    assert (settings.task_room, settings.run_python_timeout_s) == ("incident", 10)
