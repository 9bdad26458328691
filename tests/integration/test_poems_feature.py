"""The example's feature, loaded as a package of somebody else's: its toolset, its room, its
view, and what goes by age, run and owner."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from agent.core.events import EventDraft, RunCreated, RunSucceeded
from agent.core.models import AgentRequest, Room
from agent.core.settings import Settings
from agent.runs.retention import RunRetention
from agent.storage.audit import StoredAuditLog
from agent.storage.feature_tables import FeatureRetention
from agent.storage.run_deletion import SqlCondition, delete_runs
from agent.storage.sql import SqlClient
from agent.storage.usage import DAY_SECONDS, UsageLedger
from gateway.bootstrap_database import Storage, build_statements, open_store
from gateway.bootstrap_rooms import list_room_files
from gateway.configured_features import apply_feature_revisions, collect_tables, list_retentions
from gateway.doors.web_page import PageFiles
from gateway.feature import Feature, Page, PagePart
from gateway.feature_loader import FeatureConflictError, FeatureSource, LoadedFeatures, choose_features
from gateway.feature_page import collect_page
from mcp_tools.server.toolsets import Toolsets
from tests.support.processes import ROOT

DAYS = 90
NOW = 1_800_000_000.0
OLD, YOUNG = NOW - 91 * DAY_SECONDS, NOW - DAY_SECONDS


def load(choice: str = "", **further: Feature) -> LoadedFeatures:
    """The feature of the example, and further ones."""
    poems = import_module("stepgate_poems.feature").FEATURE
    features = {"poems": poems, **further}
    sources = [FeatureSource(name, name, lambda one=one: one, is_installed=True) for name, one in features.items()]  # type: ignore[misc]
    return choose_features(sources, choice, checks_hooks=True)


@dataclass
class Opened:
    """A store with the tables of the example."""

    storage: Storage
    db: SqlClient

    def retention(self, features: LoadedFeatures) -> RunRetention:
        """The retention of a gateway with these features."""
        clock = lambda: NOW  # noqa: E731 - a time that stands still
        return RunRetention(
            self.db, UsageLedger(self.db, clock), StoredAuditLog(self.db, clock), DAYS, "a",
            collect_tables(features).of_runs, lambda: list_retentions(features), clock,
        )  # fmt: skip

    async def add(self, run_id: str, at: float) -> None:
        """Stores an ended run that has listed poems."""
        body = RunCreated(request=AgentRequest(prompt="hello"), room=Room(id="test"), owner="local")
        await self.storage.journal.create_run(run_id, body, worker="w", lease_s=15)
        await self.storage.journal.append(run_id, 1, [EventDraft(RunSucceeded())])
        await self.db.write("INSERT INTO poem_listings (owner, run_id, at) VALUES ('local', ?, ?)", run_id, at)

    async def list_listings(self) -> list[str]:
        """The runs of the listings."""
        return [str(row[0]) for row in await self.db.read("SELECT run_id FROM poem_listings ORDER BY run_id")]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the example's package importable, as pip does."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples" / "stepgate-poems")


@pytest.fixture
async def opened(tmp_path: Path, installed: None) -> AsyncIterator[Opened]:
    storage = await open_store(Settings(_env_file=None, data_dir=tmp_path))
    await apply_feature_revisions(storage, load())
    yield Opened(storage, build_statements(storage))
    await storage.close()


@pytest.mark.parametrize("choice", ["", "-poems"])
async def test_its_old_rows_are_forgotten_by_age_while_it_is_off_too(opened: Opened, choice: str) -> None:
    await opened.add("run_1", OLD)
    await opened.add("run_2", YOUNG)
    retention = opened.retention(load(choice))
    assert (await retention.count_old()).features == {"listings of poems": 1}
    report = await retention.prune(by="test")
    assert report is not None
    assert (report.features, str(report)) == (
        {"listings of poems": 1}, "0 runs, 0 conversations, 1 listings of poems, 0 usage rows",
    )  # fmt: skip
    assert await opened.list_listings() == ["run_2"]
    ((detail,),) = await opened.db.read("SELECT detail FROM audit WHERE action = 'run.prune'")
    assert '"listings of poems"' in str(detail)


async def test_its_rows_go_with_their_run(opened: Opened) -> None:
    await opened.add("run_1", YOUNG)
    await opened.add("run_2", YOUNG)
    assert await delete_runs(opened.db, ["run_1"], tables=collect_tables(load()).of_runs) == 1
    assert await opened.list_listings() == ["run_2"]


async def test_nothing_is_forgotten_while_what_a_feature_needs_is_not_known(opened: Opened) -> None:
    await opened.add("run_1", OLD)
    features = load("-songs", songs=Feature(name="songs", retention="no_such_module:RETENTION"))
    with pytest.raises(ConfigError, match="no_such_module:RETENTION cannot be imported"):
        await opened.retention(features).prune(by="test")
    assert await opened.list_listings() == ["run_1"]


async def list_needed(_: SqlClient) -> set[str]:
    """A run that the feature of these tests needs."""
    return {"run_1"}


NEEDS = FeatureRetention(
    list_needed_runs=list_needed,
    build_need_condition=lambda since: SqlCondition("1 = 0 OR (? < 0 OR runs.run_id = 'run_2')", (since,)),
)


async def test_runs_that_a_feature_needs_stay(opened: Opened) -> None:
    for run_id in ("run_1", "run_2", "run_3"):
        await opened.add(run_id, YOUNG)
    await opened.db.write("UPDATE runs SET updated_at = ?", OLD)
    songs = Feature(name="songs", retention="tests.integration.test_poems_feature:NEEDS")
    report = await opened.retention(load(songs=songs)).prune(by="test")
    assert report is not None
    assert report.runs == 1
    assert await opened.list_listings() == ["run_1", "run_2"]


def test_its_tool_has_a_toolset_while_it_is_off_too() -> None:
    for choice in ("", "-poems"):
        toolsets = Toolsets(load(choice).list_toolsets())
        assert toolsets.expand(["poems"]) == ("poems",)
        assert toolsets.find_named("favourite_poems") == "poems"
    assert "poems" not in Toolsets().by_name


def test_its_room_is_there_while_it_is_on() -> None:
    files = {path.stem for path in list_room_files(load())}
    assert files - {path.stem for path in list_room_files(load("-poems"))} == {"poems"}
    other = Feature(name="other", room_folder="stepgate_poems:rooms")
    with pytest.raises(ConfigError, match="'poems' and 'other' both claim the room 'poems'"):
        list_room_files(load(other=other))
    lost = load(other=Feature(name="other", room_folder="stepgate_poems:lost"))
    assert [one.name for one in lost.skipped] == ["other"], "an installed feature that is broken is left out"


def test_its_view_is_on_the_page_while_it_is_on() -> None:
    on, off = (PageFiles(collect_page(load(choice))) for choice in ("", "-poems"))
    link = (
        b'href="#/poems" data-slot="views" data-name="poems" data-module="poems/poems.js" data-scope="agent">Poems</a>'
    )
    assert link in on.packed["index.html"].plain
    assert set(on.packed) - set(off.packed) == {"poems/poems.js"}
    assert b"poems" not in off.packed["index.html"].plain
    other = Feature(
        name="other", page=Page(folder="stepgate_poems:page", views=(PagePart("poems", "Odes", "poems.js"),))
    )
    with pytest.raises(FeatureConflictError, match="'poems' and 'other' both claim the view 'poems'"):
        collect_page(load(other=other))


def test_rooms_of_a_package_without_its_init_file_are_not_looked_for_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "stepgate_songs" / "rooms").mkdir(parents=True)
    (tmp_path / "rooms").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (skipped,) = load(songs=Feature(name="songs", room_folder="stepgate_songs:rooms")).skipped
    assert skipped.error == "stepgate_songs:rooms cannot be found: stepgate_songs has no __init__.py"


def test_toolsets_are_said_and_joined_by_what_is_in_use(installed: None) -> None:
    from gateway.feature import Toolset

    sings = Toolset("songs", ("sing",), "songs", "sing sings a song", is_default=True)
    songs, more = Feature(name="songs", toolsets=(sings,)), Feature(name="more", toolsets=(Toolset("songs", ("hum",)),))
    toolsets = Toolsets(load(songs=songs, more=more).list_toolsets())
    assert toolsets.by_name["songs"].tools == ("sing", "hum")
    assert "songs" in toolsets.expand(["default"])
    assert toolsets.describe_uses().endswith(", sing sings a song")
    off = Toolsets(load("-songs", songs=songs, more=more).list_toolsets())
    assert "sing" not in off.describe_uses()
    assert off.expand(["songs"]) == ("songs",)
    assert Toolsets(more.toolsets).find_named("hum") == "other", "nobody describes its toolset"
