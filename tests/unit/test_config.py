"""Settings: what a wrong, an empty and an unknown one are told."""

from pathlib import Path

import pytest
from pydantic_settings import EnvSettingsSource

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.core.settings.loading import find_unknown_settings, load_settings, load_valid_settings
from agent.core.settings.variables import VariableSource
from gateway.bootstrap_database import open_store


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `.env` of the folder the tests are run from."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PORT", "abc", "must be a whole number from 0 to 65535, not 'abc'"),
        ("PORT", "99999", "must be a whole number from 0 to 65535, not '99999'"),
        ("LLM_TIMEOUT_S", "0", "must be a number above 0, not '0'"),
        ("LLM_MAX_TOKENS", "1", "must be a whole number of at least 16, not '1'"),
        ("LOG_LEVEL", "loud", "must be one of debug, info, warning, error, not 'loud'"),
        ("WEB", "maybe", "must be true or false, not 'maybe'"),
        (
            "FILE_ROOTS",
            "[/srv/docs]",
            "is not a JSON list; separate the items by commas, without brackets, not '[/srv/docs]'",
        ),
        ("LLM_BASE_URL", "localhost", "must begin with http:// or https://, not 'localhost'"),
    ],
)
def test_a_wrong_setting_is_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(f"AGENT_{name}", value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert caught.value.message == f"AGENT_{name}: {told}"
    settings, faults = load_valid_settings()
    assert faults == [caught.value.message]
    assert settings.port == 8010


@pytest.mark.parametrize("name", ["DATA_DIR", "PORT", "LLM_TIMEOUT_S", "LOG_LEVEL", "MCP_SERVERS", "MODEL_FAST"])
def test_an_empty_setting_is_the_default(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    usual = load_settings()
    Path(".env").write_text(f"AGENT_{name}=8081\n")
    monkeypatch.setenv(f"AGENT_{name}", " ")
    assert load_settings() == usual


@pytest.mark.parametrize("value", ["/srv/docs, /srv/more", '["/srv/docs", "/srv/more"]'])
def test_a_list_is_separated_by_commas_or_json(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("AGENT_FILE_ROOTS", value)
    assert load_settings().file_roots == (Path("/srv/docs"), Path("/srv/more"))


@pytest.mark.parametrize("hosts", [("[fd00::5]", "gateway.lan"), ("[::1]:8080",)])
def test_a_list_may_begin_with_an_address_in_brackets(monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, ...]) -> None:
    monkeypatch.setenv("AGENT_ALLOWED_HOSTS", ",".join(hosts))
    assert load_settings().allowed_hosts == hosts


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("CORS_ORIGINS", "*", "has '*': any web page could then use this gateway; name every origin"),
        ("CORS_ORIGINS", "https://a.example, https://*.example.org", "has 'https://*.example.org': any web page"),
        ("CORS_ORIGINS", "null", "has 'null', which is what every sandboxed page and local file sends"),
        ("CORS_ORIGINS", "app.example.org", "has 'app.example.org', which is not an origin"),
        ("CORS_ORIGINS", "https://app.example.org/path", "which is not an origin"),
        ("CORS_ORIGINS", "https://user@app.example.org", "which is not an origin"),
        ("CORS_ORIGINS", "https://", "has 'https://', whose host is not a host name"),
        ("CORS_ORIGINS", "https://app.example.org:99999", "whose host is not a host name"),
        ("ALLOWED_HOSTS", "*", "has '*': it takes no patterns; name every host"),
        ("ALLOWED_HOSTS", "gate.lan,*.example.org", "has '*.example.org': it takes no patterns"),
        ("ALLOWED_HOSTS", ".example.org", "has '.example.org': it takes no patterns"),
        ("ALLOWED_HOSTS", "https://gate.lan", "has 'https://gate.lan', which is not a host name"),
        ("ALLOWED_HOSTS", "gate lan", "has 'gate lan', which is not a host name"),
    ],
)
def test_hosts_and_origins_that_could_never_or_always_match_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(f"AGENT_{name}", value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert caught.value.message.startswith(f"AGENT_{name}: ")
    assert told in caught.value.message


def test_origins_are_kept_as_browsers_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    written = "HTTPS://App.example.org:443/, http://localhost:5173, vscode-webview://1a2B, http://[::1]:80, file://"
    monkeypatch.setenv("AGENT_CORS_ORIGINS", written)
    assert load_settings().cors_origins == (
        "https://app.example.org", "http://localhost:5173", "vscode-webview://1a2B", "http://[::1]", "file://",
    )  # fmt: skip


def test_unknown_names_and_lines_that_set_nothing_are_told(tmp_path: Path) -> None:
    env_file = tmp_path / "settings.env"
    env_file.write_text("# a comment\nAGENT_PORT=1\nexport AGENT_PROT=1\nFOO\nLONG='two\nlines'\n")
    lines = find_unknown_settings({"AGENT_PROT": "2"}, env_file)
    assert lines == [
        f"{env_file} line 4 is not of the form NAME=value and is ignored",
        "AGENT_PROT is not a setting of Stepgate; did you mean AGENT_PORT?",
    ]


def test_foreign_servers_stand_in_the_data_folder_else_in_the_working_folder(tmp_path: Path) -> None:
    own, shared = tmp_path / "data" / "mcp_servers.json", Path("config/mcp_servers.json")
    settings = load_settings(data_dir=tmp_path / "data")
    assert settings.mcp_servers_path == own
    shared.parent.mkdir()
    shared.write_text("{}")
    assert settings.mcp_servers_path == shared
    own.parent.mkdir()
    own.write_text("{}")
    assert settings.mcp_servers_path == own
    assert load_settings(mcp_servers=Path("other.json")).mcp_servers_path == Path("other.json")


@pytest.mark.parametrize("url", ["postgresql://", "postgresql://me@127.0.0.1:1", "postgresql://127.0.0.1:1/"])
async def test_a_postgresql_url_names_its_database(tmp_path: Path, url: str) -> None:
    settings = load_settings(data_dir=tmp_path / "data", database_url=url)
    with pytest.raises(ConfigError, match="AGENT_DATABASE_URL: must name the database"):
        await open_store(settings)


def test_a_secret_is_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-from-a-file\n")
    monkeypatch.setenv("AGENT_LLM_API_KEY_FILE", str(secret))
    key = load_settings().llm_api_key
    assert key is not None
    assert key.get_secret_value() == "sk-from-a-file"
    assert find_unknown_settings({"AGENT_LLM_API_KEY_FILE": "x"}) == []
    assert find_unknown_settings({"AGENT_PORT_FILE": "x"}) != [], "a port is no secret"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"k" * 70_000, "is larger than 64 KiB"),
    ],
)
def test_a_secret_file_that_is_of_no_use_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, told: str
) -> None:
    secret = tmp_path / "key"
    if content is not None:
        secret.write_bytes(content)
    monkeypatch.setenv("AGENT_LLM_API_KEY_FILE", str(secret))
    with pytest.raises(ConfigError, match=f"AGENT_LLM_API_KEY_FILE: .*{told}"):
        load_settings()


def test_a_secret_is_not_set_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_LLM_API_KEY", "one")
    monkeypatch.setenv("AGENT_LLM_API_KEY_FILE", str(tmp_path))
    with pytest.raises(ConfigError, match="AGENT_LLM_API_KEY_FILE and AGENT_LLM_API_KEY are both set"):
        load_settings()


@pytest.mark.parametrize("prefix", ["AGENT_", "agent_"])
def test_variables_are_read_as_pydantic_reads_them(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    for name in Settings.model_fields:
        monkeypatch.setenv(f"{prefix}{name.upper()}", '["a", "b"]')
    monkeypatch.setenv(f"{prefix}LLM_EXTRA_BODY", '{"top_k": 1}')
    environment = EnvSettingsSource(Settings)
    values = VariableSource(Settings, environment)()
    assert values == environment()
    assert len(values) > 100


def test_an_object_that_is_not_json_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("AGENT_LLM_EXTRA_BODY={top_k: 1}\n")
    with pytest.raises(ConfigError, match="AGENT_LLM_EXTRA_BODY: write a map"):
        load_settings()
    monkeypatch.setenv("AGENT_LLM_EXTRA_BODY", "  ")
    assert load_settings().llm_extra_body == {}
    monkeypatch.setenv("AGENT_LLM_EXTRA_BODY", "top_k")
    with pytest.raises(ConfigError, match="AGENT_LLM_EXTRA_BODY: write a map"):
        load_settings()
