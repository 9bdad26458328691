"""A feature's own settings: read from the environment, explained if wrong, known by name, former ones named."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from agent.core.settings.field_types import NameList
from gateway.configured_features import choose_configured
from gateway.feature import Feature
from gateway.feature_loader import FeatureError, FeatureSource, LoadedFeatures, choose_features
from gateway.feature_settings import check_further_settings, check_settings, find_unknown_names, read_settings
from gateway.features.studio.settings import StudioSettings

HERE = "tests.unit.test_feature_settings"


class SongSettings(BaseModel):
    """Settings of a feature of these tests."""

    songs_listed: int = Field(default=10, ge=1, description="most songs in a list")
    songs_choirs: NameList = Field(default=(), description="who sings")
    songs_loud: bool = Field(default=False, description="whether they sing loudly")


class TakenSettings(BaseModel):
    """A setting that the kernel has."""

    port: int = Field(default=1, description="a port")


class SecretSettings(BaseModel):
    """A secret."""

    songs_key: SecretStr | None = Field(default=None, description="a key")


SONGS = Feature(
    name="songs", settings=f"{HERE}:SongSettings", removed_settings={"AGENT_SONGS_SHOWN": "set AGENT_SONGS_LISTED"}
)
SETTINGS = Settings(_env_file=None)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working folder without `.env`."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def choose(*features: Feature, choice: str = "") -> LoadedFeatures:
    """What is left of the features."""
    sources = [FeatureSource(one.name, one.name, lambda one=one: one, is_installed=True) for one in features]  # type: ignore[misc]
    return choose_features(sources, choice)


def test_they_are_read_from_the_environment_then_from_the_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert read_settings(SongSettings, SETTINGS) == SongSettings()
    (folder / ".env").write_text("AGENT_SONGS_LISTED=3\nAGENT_SONGS_CHOIRS=altos, basses\n")
    monkeypatch.setenv("AGENT_SONGS_LISTED", "5")
    monkeypatch.setenv("agent_songs_loud", "true")
    monkeypatch.setenv("AGENT_SONGS_CHOIRS", " ")
    read = read_settings(SongSettings, SETTINGS)
    assert (read.songs_listed, read.songs_choirs, read.songs_loud) == (5, (), True)
    monkeypatch.delenv("AGENT_SONGS_CHOIRS")
    assert read_settings(SongSettings, SETTINGS).songs_choirs == ("altos", "basses")
    for given in (Settings(_env_file=None, songs_listed=7), SETTINGS.model_copy(update={"songs_listed": 7})):
        assert read_settings(SongSettings, given).songs_listed == 7, "a program that embeds the gateway chooses"
    empty = Settings(_env_file=None, songs_listed=" ")
    assert read_settings(SongSettings, empty).songs_listed == 5


@pytest.mark.parametrize("choice", ["", "-songs"])
def test_an_argument_that_is_no_setting_stops_the_start(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_SONGS_LISTD", "7")
    features = choose(SONGS, choice=choice)
    right: dict[str, Any] = {"port": 1, "songs_loud": True, "model_fast": None}
    for given in ({}, right):
        check_further_settings(Settings(_env_file=None, **given), features)
    wrong: dict[str, Any] = {"songs_listd": 7, "songs_shown": 7, "skills_user_dir": "x", "songs_loud": True}
    with pytest.raises(ConfigError) as caught:
        check_further_settings(Settings(_env_file=None, **wrong), features)
    assert caught.value.message == (
        "skills_user_dir is not a setting of Stepgate: "
        "AGENT_SKILLS_DIRS names every folder besides the shipped one, or none; "
        "songs_listd is not a setting of Stepgate; "
        "songs_shown is not a setting of Stepgate: set AGENT_SONGS_LISTED"
    )


def test_a_program_switches_generated_tools_off_or_is_told_that_it_does_not() -> None:
    settings = Settings(_env_file=None, generated_tools="off")
    choose_configured(settings)
    assert read_settings(StudioSettings, settings).generated_tools == "off"
    with pytest.raises(ConfigError, match="generated_tool is not a setting of Stepgate"):
        choose_configured(Settings(_env_file=None, generated_tool="off"))


def test_a_wrong_one_is_explained_like_those_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_SONGS_LISTED", "many")
    monkeypatch.setenv("AGENT_SONGS_LOUD", "perhaps")
    with pytest.raises(ConfigError) as caught:
        read_settings(SongSettings, SETTINGS)
    assert caught.value.message == (
        "AGENT_SONGS_LISTED: must be a whole number of at least 1, not 'many'; "
        "AGENT_SONGS_LOUD: must be true or false, not 'perhaps'"
    )


@pytest.mark.parametrize("choice", ["", "-songs"])
def test_their_names_are_known_and_former_ones_are_explained(monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    monkeypatch.setattr("gateway.feature_settings.load_features", lambda _: choose(SONGS, choice=choice))
    for name in ("LISTED", "LISTD", "SHOWN"):
        monkeypatch.setenv(f"AGENT_SONGS_{name}", "1")
    lines = [line for line in find_unknown_names() if "SONGS" in line]
    assert lines == [
        "AGENT_SONGS_SHOWN has no effect: set AGENT_SONGS_LISTED",
        "AGENT_SONGS_LISTD is not a setting of Stepgate; did you mean AGENT_SONGS_LISTED?",
    ]


def test_one_that_cannot_be_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [Feature(name=name, settings=target) for name, target in (("a", "no_module:X"), ("b", f"{HERE}:HERE"))]
    monkeypatch.setattr("gateway.feature_settings.load_features", lambda _: choose(*broken, SONGS))
    monkeypatch.setenv("AGENT_SONGS_LISTED", "1")
    assert not [line for line in find_unknown_names() if "SONGS" in line]


def test_the_shipped_ones_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_GENERATED_TOOLS", "off")
    monkeypatch.setenv("AGENT_INCIDENT_ISSUES", "x")
    lines = find_unknown_names()
    assert [line for line in lines if "GENERATED" in line or "INCIDENT" in line] == [
        "AGENT_INCIDENT_ISSUES has no effect: the room `incident` names it: the last one of its `collections`"
    ]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ((SONGS, Feature(name="b", settings=f"{HERE}:SongSettings")), "'songs' and 'b' both claim the setting"),
        (
            (Feature(name="b", settings=f"{HERE}:TakenSettings"),),
            "'kernel' and 'b' both claim .* 'AGENT_PORT'",
        ),
        ((Feature(name="b", settings=f"{HERE}:SecretSettings"),), "declares the secret AGENT_SONGS_KEY as a setting"),
        ((Feature(name="b", settings=f"{HERE}:HERE"),), "test_feature_settings:HERE is not a Pydantic model"),
    ],
)
def test_what_may_not_be_declared_stops_the_start(features: tuple[Feature, ...], message: str) -> None:
    with pytest.raises(FeatureError, match=message):
        check_settings(choose(*features))
    check_settings(choose(*features, choice="-b"))
