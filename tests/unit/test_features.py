"""The loader of features: order of needs, circles, conflicts, what is switched off and what cannot be imported."""

import json
import subprocess
import sys
from functools import partial

import pytest
from starlette.routing import Route

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.feature import Command, Door, Feature
from gateway.feature_loader import FeatureConflictError, LoadedFeatures, choose_features, load_features
from gateway.feature_routes import collect_routes
from gateway.shipped_features import SHIPPED

FEATURES = (
    Feature(name="late", needs=("early", "middle")),
    Feature(name="middle", needs=("early",)),
    Feature(name="early"),
)


def choose(*features: Feature, choice: str = "") -> LoadedFeatures:
    """What is left of the features."""
    return choose_features({f"{one.name}:FEATURE": partial(_return, one) for one in features}, choice)


def _return(feature: Feature) -> Feature:
    return feature


def names(loaded: LoadedFeatures) -> list[str]:
    return [feature.name for feature in loaded]


def list_things(_: Settings) -> list[Route]:
    """A door of these tests."""
    return [Route("/things", endpoint=lambda _: None, methods=["GET"])]


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
        ("early, middle", ["early", "middle"]),
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


def test_one_that_cannot_be_imported_is_skipped_and_named() -> None:
    def load() -> Feature:
        raise ImportError("no module named 'poems'")

    loaded = choose_features({"poems:FEATURE of poems": load, "early": lambda: FEATURES[2]}, "")
    assert names(loaded) == ["early"]
    (skipped,) = loaded.skipped
    assert (skipped.name, skipped.error) == ("poems", "ImportError: no module named 'poems'")


def test_two_with_one_name_stop_the_start() -> None:
    sources = {"one:FEATURE": lambda: FEATURES[2], "two:FEATURE": lambda: FEATURES[2]}
    with pytest.raises(FeatureConflictError, match="'early': one:FEATURE and two:FEATURE"):
        choose_features(sources, "")


def test_two_that_claim_one_command_are_both_named() -> None:
    command = {"sing": Command("songs:sing", "Sings.")}
    loaded = choose(Feature(name="a", commands=command), Feature(name="b", commands=command))
    with pytest.raises(FeatureConflictError, match=r"'a' and 'b' both claim the command 'sing'.*AGENT_FEATURES=-b"):
        loaded.list_commands()


def test_two_that_claim_one_route_are_both_named() -> None:
    loaded = choose(Feature(name="a", routes=(THINGS,)), Feature(name="b", routes=(THINGS,)))
    with pytest.raises(ConfigError, match="'a' and 'b' both claim the route 'GET /things'"):
        collect_routes((), loaded, Settings(_env_file=None))


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
