"""Features that are off are not there, and what is left works."""

import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from agent.core.errors import ConfigError, ConflictError
from agent.core.settings import Settings
from agent.planning.planned import Planned
from agent.run_context.extensions import Extension
from agent.run_context.run import Run
from agent.run_context.run_hooks import PlanInquiry, PlanSource, RunHooks
from gateway.bootstrap import build_gateway
from gateway.cli.doctor_checks import run_checks
from gateway.feature import Feature
from gateway.feature_host import FeatureHost
from gateway.shipped_features import SHIPPED
from tests.integration.conftest import Serve
from tests.support.scripted_server import ScriptedServer
from tests.support.traced_turn import trace_turn


async def test_the_kernel_alone_calculates(serve: Serve) -> None:
    async with serve(None, features="none") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        body = {"model": "stepgate", "messages": [{"role": "user", "content": "What is 17.5 * 240?"}]}
        answered = await client.post("/v1/chat/completions", json=body)
        assert "4200" in answered.json()["choices"][0]["message"]["content"]
        rooms = {one["id"] for one in (await client.get("/v1/models")).json()["data"]}
        assert rooms.isdisjoint({"knowledge", "incident", "pipelines", "studio"})
        tools = {one["name"] for one in (await client.get("/v1/tools")).json()["data"]}
        assert "calculator" in tools
        assert tools.isdisjoint({"search_knowledge", "recipe_save", "schedule_create", "summarize"})
        for path in ("/v1/recipes", "/v1/schedules", "/v1/collections", "/v1/responses"):
            assert (await client.get(path)).status_code == 404, path
        doors = (await client.get("/")).json()["doors"]
        assert doors.keys().isdisjoint({"tasks", "rooms"})
        assert {"openai", "agent", "mcp", "openapi"} <= doors.keys(), "the kernel's own"


DOORS = {"recipes": "/v1/recipes", "schedules": "/v1/schedules", "fleet": "/v1/queue"}


async def test_one_feature_is_off_and_on_again(serve: Serve) -> None:
    for name, door in DOORS.items():
        assert await list_missing_doors(serve, features=f"-{name}") == {door}
    assert await list_missing_doors(serve) == set()
    async with serve(None, features="-incident") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        rooms = {one["id"] for one in (await client.get("/v1/models")).json()["data"]}
    assert "incident" not in rooms


async def list_missing_doors(serve: Serve, **options: str) -> set[str]:
    """Those of `DOORS` that a gateway does not have."""
    async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        return {door for door in DOORS.values() if (await client.get(door)).status_code == 404}


async def test_a_conversation_is_deleted_where_documents_are_off(serve: Serve) -> None:
    async with serve(None, features="-documents") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        made = (await client.post("/v1/conversations", json={})).json()["id"]
        deleted = await client.delete(f"/v1/conversations/{made}")
    assert (deleted.status_code, deleted.json()["deleted"]) == (200, True)


def test_nothing_of_a_feature_that_is_off_is_imported_or_built(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway

async def main():
    settings = Settings(_env_file=None, data_dir=Path({str(tmp_path)!r}), features="none", drain_seconds=1)
    async with build_gateway(settings, foreign="ignored") as gateway:
        print(gateway.host.parts, gateway.host.services)

asyncio.run(main())
print([name for name in sys.modules if name.startswith("gateway.features.") and name.count(".") > 2
       and not name.endswith(".feature")])
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["{} {}", "[]"]


async def test_an_owner_is_not_deleted_by_halves_while_a_feature_is_off(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, features="-documents", drain_seconds=1)
    async with build_gateway(settings, recover=False, foreign="ignored") as gateway:
        await gateway.keys.create("anna", "a key", ["chat"])
        with pytest.raises(ConflictError, match=r"'documents'.*AGENT_FEATURES"):
            await gateway.owners.delete("anna", by="test")
        assert await gateway.owners.count_rows("anna") == {"api_keys": 1}


class MisplacedHooks(RunHooks):
    """Hooks with a plan source in a place that is not there."""

    @property
    def plan_sources(self) -> tuple[PlanSource, ...]:
        """One that comes before `answers`."""
        return (PlanSource("mine", plan_nothing, before="answers"),)


async def plan_nothing(_: Run, __: PlanInquiry) -> Planned | None:
    """A plan source of these tests."""
    return None


def list_extensions(_: FeatureHost) -> tuple[Extension, ...]:
    """A hook of these tests."""
    return (Extension("mine", hooks=(MisplacedHooks(),)),)


def list_components(_: FeatureHost) -> dict[str, Callable[[], Awaitable[str]]]:
    """A hook of these tests: a component that the kernel has."""
    return {"store": Path.cwd}  # type: ignore[dict-item] # it is never called


HERE = "tests.integration.test_features_off"
MISSING = "no_such_module:hook cannot be imported: ModuleNotFoundError: .*AGENT_FEATURES"


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (Feature(name="broken", build="no_such_module:hook"), MISSING),
        (Feature(name="broken", tools="no_such_module:hook"), MISSING),
        (Feature(name="broken", webhooks="no_such_module:hook"), "both claim the hook for 'webhooks'"),
        (Feature(name="broken", around_runs="no_such_module:hook"), MISSING),
        (Feature(name="broken", readiness=f"{HERE}:list_components"), "'kernel' and 'broken' .* component 'store'"),
        (Feature(name="broken", extensions=f"{HERE}:list_extensions"), "'mine' comes before 'answers'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, tuple) else None,
)
async def test_a_shipped_feature_that_cannot_be_used_stops_the_start_and_doctor_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feature: Feature, message: str
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BROKEN", feature, raising=False)
    monkeypatch.setattr("gateway.feature_loader.SHIPPED", (*SHIPPED, f"{HERE}:BROKEN"))
    settings = Settings(_env_file=None, data_dir=tmp_path, drain_seconds=1)
    with pytest.raises(ConfigError, match=message):
        async with build_gateway(settings, recover=False, foreign="ignored"):
            pass
    details = [one.detail async for one in run_checks(settings, wrong=[], unknown=[]) if not one.ok]
    assert any(re.search(message, detail) for detail in details), details


async def test_a_queue_without_its_feature_stops_the_start(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, features="-fleet", dispatch="queue")
    with pytest.raises(ConfigError, match="needs the feature 'fleet'"):
        async with build_gateway(settings, recover=False, foreign="ignored"):
            pass


async def test_a_completion_of_the_kernel_alone_runs_no_file_of_a_feature(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    turn = await trace_turn(tmp_path, model_server, features="none")
    assert not turn.features
