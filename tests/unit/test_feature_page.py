"""The parts of the web page: what a feature adds is listed and served while it is on; two that claim one part are
named."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway import app
from gateway.doors.web_page import PageFiles
from gateway.feature import Feature, Page, PagePart
from gateway.feature_loader import FeatureConflictError, FeatureSource, LoadedFeatures, choose_features, load_features
from gateway.feature_page import KERNEL_PAGE, collect_page
from tests.support.processes import ROOT

FOLDER = "stepgate_ballads:page"
SONGS = PagePart("songs", "Songs & more", "songs.js", "agent")


def load(*features: Feature, choice: str = "") -> LoadedFeatures:
    """Features of installed packages, checked as a gateway does at its start."""
    sources = [FeatureSource(one.name, one.name, lambda one=one: one, is_installed=True) for one in features]  # type: ignore[misc]
    return choose_features(sources, choice, checks_hooks=True)


@pytest.fixture
def songs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the page's files of a package that can be imported."""
    folder = tmp_path / "stepgate_ballads" / "page"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name in ("songs.js", "words.js", "songs.css", "notes.txt"):
        (folder / name).write_text(f"/* {name} */")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stepgate_ballads", raising=False)  # of the test before, in another folder
    return folder


def list_links(files: PageFiles) -> list[tuple[str, str]]:
    """The slots and names of the parts that a page lists."""
    return re.findall(r'data-slot="([\w-]+)" data-name="([\w-]+)"', files.packed["index.html"].plain.decode())


def test_a_view_is_listed_and_served_while_its_feature_is_on(songs: Path) -> None:
    feature = Feature(name="singing", page=Page(folder=FOLDER, views=(replace(SONGS, place=15),)))
    on, off = (PageFiles(collect_page(load(feature, choice=choice))) for choice in ("", "-singing"))
    assert list_links(on) == [("views", name) for name in ("chat", "songs", "runs", "team")]
    assert list_links(off) == [("views", name) for name in ("chat", "runs", "team")]
    assert '<a href="#/songs"' in (page := on.packed["index.html"].plain.decode())
    assert 'data-module="singing/songs.js" data-scope="agent">Songs &amp; more</a>' in page
    assert {name for name in on.packed if "/" in name} == {
        f"singing/{one}" for one in ("songs.js", "songs.css", "words.js")
    }
    assert set(off.packed) == set(on.packed) - {name for name in on.packed if "/" in name}
    assert on.packed["singing/words.js"].plain == b"/* words.js */"
    assert on.edition != off.edition


def test_an_offer_of_rooms_is_listed_with_its_rooms(songs: Path) -> None:
    offer = replace(SONGS, rooms=("choir", "solo"))
    page = PageFiles(collect_page(load(Feature(name="singing", page=Page(folder=FOLDER, room_offers=(offer,))))))
    assert list_links(page)[3:] == [("room-offers", "songs")]
    assert 'data-scope="agent" data-rooms="choir solo"' in page.packed["index.html"].plain.decode()


def test_a_view_is_listed_with_the_rooms_that_it_is_for(songs: Path) -> None:
    view = replace(SONGS, rooms=("choir",))
    page = PageFiles(collect_page(load(Feature(name="singing", page=Page(folder=FOLDER, views=(view,))))))
    assert 'data-scope="agent" data-rooms="choir">' in page.packed["index.html"].plain.decode()
    builder = PageFiles(collect_page(load_features("", with_installed=False))).packed["index.html"].plain.decode()
    assert (
        'data-name="build" data-module="pipeline_builder/build.js" data-scope="ingest" data-rooms="pipelines"'
        in builder
    )


def test_the_page_names_no_room_and_no_view_of_a_feature() -> None:
    features = list(load_features("", with_installed=False))
    rooms = {room for feature in features for room in feature.rooms}
    views = {view.name for feature in features if feature.page is not None for view in feature.page.views}
    assert {"knowledge", "documents", "build"} <= rooms | views
    names = (rooms | views) - {view.name for view in KERNEL_PAGE.views}
    named = re.compile(rf'"(?:{"|".join(names)})"|#/(?:{"|".join(names)})\b')
    texts = {path.name: path.read_text() for path in (ROOT / "gateway" / "web").glob("*.js")}
    assert {name: found for name, text in texts.items() if (found := named.findall(text))} == {}


def test_another_file_of_a_feature_makes_another_edition(songs: Path) -> None:
    page = collect_page(load(Feature(name="singing", page=Page(folder=FOLDER, views=(SONGS,)))))
    before = PageFiles(page).edition
    assert PageFiles(page).edition == before
    (songs / "words.js").write_text("/* others */")
    assert PageFiles(page).edition != before


def test_studio_is_there_if_a_feature_has_a_section_of_it(songs: Path) -> None:
    features = load(
        Feature(
            name="singing",
            page=Page(folder=FOLDER, studio=(replace(SONGS, place=2), PagePart("odes", "Odes", "words.js", place=1))),
        )
    )
    assert list_links(PageFiles(collect_page(features)))[3:] == [
        ("views", "studio"), ("studio", "odes"), ("studio", "songs"),
    ]  # fmt: skip
    assert "studio" not in [one.name for one in collect_page(load()).views]


@pytest.mark.parametrize(
    ("page", "claimed"),
    [
        (Page(folder=FOLDER, views=(SONGS,)), "the view 'songs'"),
        (Page(folder=FOLDER, studio=(SONGS,)), "the section of Studio 'songs'"),
        (Page(folder=FOLDER, run_offers=(SONGS,)), "the offer of runs 'songs'"),
        (Page(folder=FOLDER, room_offers=(SONGS,)), "the offer of rooms 'songs'"),
        (Page(folder=FOLDER, attachments="words.js"), "the module of the page for 'attachments'"),
        (Page(folder=FOLDER, citations="words.js"), "the module of the page for 'citations'"),
    ],
)
def test_two_that_claim_one_part_are_both_named(songs: Path, page: Page, claimed: str) -> None:
    features = load(Feature(name="a", page=page), Feature(name="b", page=page))
    with pytest.raises(
        FeatureConflictError, match=f"'a' and 'b' both claim {claimed}; switch one off: AGENT_FEATURES=-b"
    ):
        collect_page(features)
    collect_page(load(Feature(name="a", page=page), Feature(name="b", page=page), choice="-b"))


@pytest.mark.parametrize("name", ["chat", "studio", "models"])
def test_a_view_of_the_kernel_cannot_be_claimed(songs: Path, name: str) -> None:
    features = load(Feature(name="a", page=Page(folder=FOLDER, views=(replace(SONGS, name=name),))))
    with pytest.raises(FeatureConflictError, match=f"'kernel' and 'a' both claim the view '{name}'.*AGENT_FEATURES=-a"):
        collect_page(features)


def test_a_conflict_stops_the_start_of_a_gateway_that_serves_the_page(
    songs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    features = load(
        Feature(name="a", page=Page(folder=FOLDER, views=(SONGS,))),
        Feature(name="b", page=Page(folder=FOLDER, views=(SONGS,))),
    )
    monkeypatch.setattr(app, "choose_configured", lambda _: features)
    with pytest.raises(ConfigError, match="'a' and 'b' both claim the view 'songs'"):
        app.create_app(Settings(_env_file=None, data_dir=tmp_path))
    app.create_app(Settings(_env_file=None, data_dir=tmp_path, web=False))


def test_an_installed_feature_whose_page_lacks_a_file_is_skipped_and_named(songs: Path) -> None:
    lost = load(Feature(name="singing", page=Page(folder=FOLDER, run_offers=(replace(SONGS, module="lost.js"),))))
    assert [one.error for one in lost.skipped] == [
        "stepgate_ballads:page has no file 'lost.js', which the page of the feature names"
    ]
    gone = load(Feature(name="singing", page=Page(folder="stepgate_ballads:nowhere")))
    assert next(one.error for one in gone.skipped).startswith("stepgate_ballads:nowhere cannot be found")


@pytest.mark.parametrize("name", ["Songs", "my songs", "a/b", "", "ö"])
def test_a_name_that_cannot_be_in_an_address_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="use lowercase letters, digits, hyphens, underscores"):
        replace(SONGS, name=name)


@pytest.mark.parametrize("feature", load_features("", with_installed=False).features, ids=lambda one: one.name)
def test_the_parts_of_a_shipped_feature_are_served(feature: Feature) -> None:
    if feature.page is not None:
        files = PageFiles(collect_page(choose_features([], "")))
        assert not [name for name in files.packed if name.startswith(f"{feature.name}/")], "it is off"
        on = PageFiles(collect_page(load_features("", with_installed=False)))
        assert {f"{feature.name}/{module}" for module in feature.page.list_modules()} <= set(on.packed)
