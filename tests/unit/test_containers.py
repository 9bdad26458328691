"""In a container texts name the addresses by which the programs of its host are reached."""

from pathlib import Path

import pytest

from agent.core import containers
from agent.core.containers import describe_unreached, get_example_address, is_in_container
from agent.core.errors import ModelError
from agent.llm.http import HttpModelClient

HOST = "http://host.docker.internal"
PODMAN = {"container": "podman"}
CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def test_addresses_are_named_as_a_container_reaches_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (is_in_container({}), get_example_address({})) == (False, "http://127.0.0.1:11434/v1")
    assert get_example_address(PODMAN) == f"{HOST}:11434/v1"
    assert get_example_address(CLUSTER) == "http://ollama:11434/v1"
    (tmp_path / "dockerenv").touch()
    monkeypatch.setattr(containers, "CONTAINER_FILES", (tmp_path / "dockerenv",))
    assert (is_in_container({}), get_example_address({})) == (True, f"{HOST}:11434/v1")


@pytest.mark.parametrize(
    ("address", "environment", "expected"),
    [
        ("http://127.0.0.1:1234/v1", PODMAN, f"{HOST}:1234/v1"),
        ("http://localhost/v1", PODMAN, f"{HOST}/v1"),
        ("http://[::1]:8000", PODMAN, f"{HOST}:8000"),
        ("http://127.0.0.1:8000/v1", CLUSTER, "http://ollama:8000/v1"),
        (f"{HOST}:11434/v1", PODMAN, "OLLAMA_HOST=0.0.0.0"),
        ("http://192.168.1.20:8000/v1", PODMAN, ""),
        ("http://models.example.org/v1", PODMAN, ""),
        ("http://127.0.0.1:1234/v1", {}, ""),
        (f"{HOST}:11434/v1", {}, ""),
    ],
)
def test_a_refused_connection_is_explained(address: str, environment: dict[str, str], expected: str) -> None:
    text = describe_unreached(address, environment=environment)
    assert expected in text
    assert bool(text) == bool(expected)


def test_an_unknown_name_of_the_host_is_explained() -> None:
    text = describe_unreached(f"{HOST}:1/v1", is_name_unknown=True, environment=PODMAN)
    assert "--add-host=host.docker.internal:host-gateway" in text
    assert describe_unreached("http://models.example.org", is_name_unknown=True, environment=PODMAN) == ""


async def test_a_model_at_loopback_says_in_a_container_where_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    client = HttpModelClient("http://127.0.0.1:9/v1")
    with pytest.raises(ModelError) as outside:
        await client.check()
    monkeypatch.setenv("container", "podman")
    with pytest.raises(ModelError) as inside:
        await client.check()
    await client.aclose()
    assert "container" not in outside.value.message
    assert "?;" not in inside.value.message
    assert "connection refused" in inside.value.message
    assert f"{HOST}:9/v1" in inside.value.message
