"""The loader of features: order of needs, circles, conflicts, what is switched off and what cannot be imported."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from starlette.routing import BaseRoute, Mount, Route, Router

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.feature import Command, Door, Feature, Toolset
from gateway.feature_loader import (
    FeatureConflictError,
    FeatureSource,
    LoadedFeatures,
    choose_features,
    load_features,
)
from gateway.feature_routes import collect_routes, collect_upload_limits
from gateway.shipped_features import SHIPPED

FEATURES = (
    Feature(name="late", needs=("early", "middle")),
    Feature(name="middle", needs=("early",)),
    Feature(name="early"),
)


def choose(*features: Feature, choice: str = "") -> LoadedFeatures:
    """What is left of the features."""
    return choose_features([source_of(one, one.name) for one in features], choice)


def source_of(feature: object, name: str, origin: str = "") -> FeatureSource:
    """A source that gives this object."""
    return FeatureSource(name, origin or f"{name}:FEATURE", lambda: feature, is_installed=True)


def load_missing() -> Feature:
    """What an entry point does if a module is missing."""
    raise ImportError("no module named 'poems'")


MISSING = FeatureSource("poems", "poems:FEATURE of poems", load_missing)
EARLY = FEATURES[2]


def names(loaded: LoadedFeatures) -> list[str]:
    return [feature.name for feature in loaded]


def list_things(_: Settings) -> list[Route]:
    """A door of these tests."""
    return [Route("/things", endpoint=lambda _: None, methods=["GET"])]


DOORS: dict[str, list[BaseRoute]] = {}


def list_other(_: Settings) -> list[BaseRoute]:
    """A door that a test has filled."""
    return DOORS["other"]


def get_limits(_: Settings) -> dict[str, int]:
    """A limit of uploads."""
    return {"/things": 1}


THINGS = Door("tests.unit.test_features:list_things")


def test_features_come_after_those_they_need() -> None:
    assert names(choose(*FEATURES)) == ["early", "middle", "late"]


def test_what_needs_a_feature_that_is_off_is_off_and_says_so() -> None:
    loaded = choose(*FEATURES, choice="-middle")
    assert names(loaded) == ["early"]
    assert [(one.name, one.error) for one in loaded.skipped] == [
        ("late", "it needs the feature 'middle', which is off")
    ]


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("early", ["early"]),
        ("late", ["early", "middle", "late"]),
        ("early, middle", ["early", "middle"]),
        ("late,-early", []),
        ("-late", ["early", "middle"]),
        ("none", []),
        ("", ["early", "middle", "late"]),
    ],
)
def test_a_choice_names_what_is_used_or_left_out(choice: str, left: list[str]) -> None:
    assert names(choose(*FEATURES, choice=choice)) == left


def test_a_choice_of_a_feature_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(FeatureConflictError, match="no feature 'lte'; there are late, middle, early"):
        choose(*FEATURES, choice="-lte")


def test_a_circle_stops_the_start_with_its_names() -> None:
    circle = (Feature(name="a", needs=("b",)), Feature(name="b", needs=("c",)), Feature(name="c", needs=("a",)))
    with pytest.raises(FeatureConflictError, match="a -> b -> c -> a"):
        choose(*circle)


@pytest.mark.parametrize("choice", ["", "early,poems", "-poems", "-evaluation"])
def test_one_that_cannot_be_imported_is_skipped_and_named_whatever_the_choice_says(choice: str) -> None:
    loaded = choose_features([MISSING, source_of(EARLY, "early")], choice)
    assert names(loaded) == ["early"]
    (skipped,) = loaded.skipped
    assert (skipped.name, skipped.error) == ("poems", "ImportError: no module named 'poems'")


def test_what_is_not_a_feature_is_skipped_and_named() -> None:
    loaded = choose_features([source_of({"name": "poems"}, "poems"), source_of(EARLY, "early")], "")
    assert names(loaded) == ["early"]
    assert [(one.name, one.error) for one in loaded.skipped] == [
        ("poems", "TypeError: poems:FEATURE names a dict, not a Feature")
    ]


def test_an_installed_feature_whose_hook_cannot_be_imported_is_skipped_with_what_needs_it() -> None:
    broken = Feature(name="poems", build="no_such_module:build", owned_tables=("poem_favourites",))
    door = Feature(name="door", routes=(Door("tests.unit.test_features:NO_SUCH_ROUTES"),))
    further = Feature(name="further", needs=("poems",))
    sources = [source_of(one, one.name) for one in (broken, door, further, EARLY)]
    loaded = choose_features(sources, "", checks_hooks=True)
    assert names(loaded) == ["early"]
    errors = {one.name: one.error for one in loaded.skipped}
    assert errors["poems"] == (
        "no_such_module:build cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert "NO_SUCH_ROUTES cannot be imported: AttributeError" in errors["door"]
    assert errors["further"] == "it needs the feature 'poems', which is off"
    assert broken in loaded.known, "its rows are deleted with their owner"
    assert [one.name for one in choose_features(sources, "-poems,-door", checks_hooks=True).skipped] == ["further"]


def test_a_feature_that_may_keep_things_of_owners_and_cannot_be_asked_is_named() -> None:
    stores = Feature(name="stores", owned_stores="stores:LIST")
    sources = [MISSING, source_of(stores, "stores"), source_of(EARLY, "early")]
    assert choose_features(sources, "").list_unreachable_keepers() == ("poems",)
    assert choose_features(sources, "early").list_unreachable_keepers() == ("stores", "poems")


def test_two_with_one_name_stop_the_start() -> None:
    with pytest.raises(FeatureConflictError, match="'early': one:FEATURE and two:FEATURE"):
        choose_features([source_of(EARLY, "early", "one:FEATURE"), source_of(EARLY, "early", "two:FEATURE")], "")


@pytest.mark.parametrize(
    ("feature", "noun"),
    [
        (Feature(name="a", rooms=("shared",)), "room"),
        (Feature(name="a", owned_tables=("shared",)), "table"),
        (Feature(name="a", toolsets=(Toolset("shared", ("sing",), "songs"),)), "toolset"),
    ],
)
def test_two_that_claim_one_room_table_or_toolset_are_both_named(feature: Feature, noun: str) -> None:
    a, b = feature, replace(feature, name="b")
    with pytest.raises(FeatureConflictError, match=f"'a' and 'b' both claim the {noun} 'shared'.*AGENT_FEATURES=-b"):
        choose(a, b)
    assert names(choose(a, b, choice="-b")) == ["a"]


def test_two_that_claim_one_command_are_both_named() -> None:
    command = {"sing": Command("songs:sing", "Sings.")}
    loaded = choose(Feature(name="a", commands=command), Feature(name="b", commands=command))
    with pytest.raises(FeatureConflictError, match=r"'a' and 'b' both claim the command 'sing'.*AGENT_FEATURES=-b"):
        loaded.list_commands()


def test_two_that_claim_one_route_are_both_named() -> None:
    loaded = choose(Feature(name="a", routes=(THINGS,)), Feature(name="b", routes=(THINGS,)))
    with pytest.raises(ConfigError, match="'a' and 'b' both claim the route 'GET /things'"):
        collect_routes((), loaded, Settings(_env_file=None))


@pytest.mark.parametrize(
    ("other", "claimed"),
    [
        (Route("/things/{title}", endpoint=list_things, methods=["GET"]), "the route 'GET /things/{}'"),
        (Mount("/things", app=Router()), "the routes below '/things'"),
        (Mount("/things/{title}", app=Router()), "the routes below '/things/{}'"),
    ],
)
def test_routes_that_take_the_same_requests_are_a_conflict(other: BaseRoute, claimed: str) -> None:
    own = [Route("/things/{id}", endpoint=list_things, methods=["GET"])]
    DOORS["other"] = [other]
    feature = Feature(name="a", routes=(Door("tests.unit.test_features:list_other"),))
    with pytest.raises(ConfigError, match=re.escape(f"both claim {claimed}") + ".*AGENT_FEATURES=-a"):
        collect_routes([(0, own)], choose(feature), Settings(_env_file=None))


def test_routes_whose_order_decides_are_no_conflict() -> None:
    DOORS["other"] = [Route("/things/new", endpoint=list_things, methods=["GET"]), Mount("/thing", app=Router())]
    own = [Route("/things/{id}", endpoint=list_things, methods=["GET"])]
    feature = Feature(name="a", routes=(Door("tests.unit.test_features:list_other"),))
    assert len(collect_routes([(0, own)], choose(feature), Settings(_env_file=None))) == 3


def test_a_door_that_cannot_be_imported_stops_the_start_with_its_name() -> None:
    feature = Feature(name="a", routes=(Door("no_such_module:ROUTES"),))
    with pytest.raises(ConfigError, match="no_such_module:ROUTES cannot be imported: ModuleNotFoundError"):
        collect_routes((), choose(feature), Settings(_env_file=None))


def test_two_that_limit_the_uploads_to_one_path_are_both_named() -> None:
    limits = "tests.unit.test_features:get_limits"
    loaded = choose(Feature(name="a", upload_limits=limits), Feature(name="b", upload_limits=limits))
    with pytest.raises(ConfigError, match="'a' and 'b' both claim the limit of uploads to '/things'"):
        collect_upload_limits(loaded, Settings(_env_file=None))


def test_a_route_of_the_kernel_cannot_be_claimed() -> None:
    settings = Settings(_env_file=None)
    with pytest.raises(ConfigError, match="'kernel' and 'a'"):
        collect_routes([(0, list_things(settings))], choose(Feature(name="a", routes=(THINGS,))), settings)


def test_all_shipped_features_load_in_an_order_of_their_needs() -> None:
    loaded = load_features("", with_installed=False)
    assert not loaded.skipped
    assert len(loaded.features) == len(SHIPPED)
    known: set[str] = set()
    for feature in loaded:
        assert known.issuperset(feature.needs), feature.name
        known.add(feature.name)


def test_listing_the_features_imports_nothing_of_them() -> None:
    program = (
        "import json, sys; from gateway.feature_loader import load_features; load_features('', with_installed=False)\n"
        "names = ('agent', 'pydantic', 'fastapi', 'gateway.features.')\n"
        "print(json.dumps([name for name in sys.modules if name.startswith(names)]))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    packages = {target.split(".")[2] for target in SHIPPED}
    allowed = {f"gateway.features.{name}{tail}" for name in packages for tail in ("", ".feature")}
    assert set(json.loads(shown)) == allowed


@pytest.mark.parametrize(
    ("choice", "off"),
    [
        ("-documents", {"documents", "incident", "pipeline_builder", "studio"}),
        ("-studio", {"studio"}),
        ("-protocols", {"protocols", "schedules"}),
    ],
)
def test_a_shipped_feature_takes_only_those_along_that_use_its_parts(choice: str, off: set[str]) -> None:
    loaded = load_features(choice, with_installed=False)
    assert {feature.name for feature in loaded.known} - {feature.name for feature in loaded} == off
