"""A field of an API key is in each of its forms, and is stored without a column."""

import inspect
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.storage.api_keys import COLUMN_FIELDS, ApiKey, KeyLimits, KeyOptions, KeyStore
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.cli.keys import _to_row, create, set_limits
from gateway.doors.key_forms import KeyChange, KeyItem, KeyLimitsChange, NewKey, to_item

KEY_FIELDS = {field.name for field in fields(ApiKey)}
OPTIONS = set(KeyOptions.__annotations__)
KEY = ApiKey("k1", "anna", "laptop", frozenset(("mcp", "chat")), ("calculator",), KeyLimits(parallel_runs=2), 60.0)


@dataclass(frozen=True, slots=True)
class NotedKey(ApiKey):
    """A key with one field more."""

    note: str = ""


def test_each_form_has_the_fields() -> None:
    assert set(KeyItem.model_fields) == KEY_FIELDS | {"tokens", "cost_usd"}
    assert set(NewKey.model_fields) == OPTIONS | {"owner", "name", "scopes"}
    assert KEY_FIELDS > OPTIONS
    options = {{"days": "expires_at"}.get(name, name) for name in inspect.signature(create).parameters}
    assert options >= OPTIONS - {"limits"}
    limits = {"rpm": "requests_per_minute", "tpm": "tokens_per_minute", "parallel": "parallel_runs"}
    assert {limits.get(name, name) for name in options} >= set(KeyLimits.model_fields)


def test_each_limit_can_be_changed_by_both_forms() -> None:
    names = {"rpm": "requests_per_minute", "tpm": "tokens_per_minute", "parallel": "parallel_runs"}
    options = {names.get(name, name) for name in inspect.signature(set_limits).parameters}
    assert options - {"stepgate", "key_id"} == set(KeyLimits.model_fields) == set(KeyLimitsChange.model_fields)
    change = KeyChange.model_validate({"limits": {"budget_usd": None, "parallel_runs": 3}})
    assert change.to_changes() == {"budget_usd": None, "parallel_runs": 3}, "what was not sent stays"


def test_routes_and_commands_show_the_same_key() -> None:
    item, row = to_item(KEY, (3, 0.5)), _to_row(KEY, (3, 0.5))
    assert (item.scopes, item.tools, item.tokens, item.cost_usd) == (["chat", "mcp"], ["calculator"], 3, 0.5)
    assert (item.created_at, item.expires_at) == (datetime(1970, 1, 1, 0, 1, tzinfo=UTC), None)
    assert row == item.model_dump(mode="json") | {
        "limits": {"parallel_runs": 2}, "state": "valid", "last_used": None, "used_tokens": 3, "used_usd": 0.5,
    }  # fmt: skip


def test_a_new_key_is_created_with_what_was_chosen() -> None:
    given = {"owner": "anna", "name": "laptop", "scopes": ["chat"], "expires_at": "1970-01-01T00:01:00Z"}
    options = NewKey.model_validate(given).to_options()
    assert options == {"tools": None, "limits": KeyLimits(), "expires_at": 60.0}


async def test_a_further_field_is_stored_with_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_sqlite(tmp_path / "stepgate.db")
    keys = KeyStore(SqliteClient(store.database), lambda: 60.0)
    plain, _ = await keys.create("anna", "laptop", ["chat"], limits=KeyLimits(parallel_runs=2))
    monkeypatch.setattr("agent.storage.api_keys.ApiKey", NotedKey)
    noted, _ = await keys.create("anna", "desk", ["chat"], note="for the desk")  # type: ignore[call-arg]
    assert isinstance(noted, NotedKey)
    assert await keys.get(noted.id) == noted
    assert (await keys.get(plain.id)).limits == KeyLimits(parallel_runs=2)
    monkeypatch.undo()
    assert (await keys.get(noted.id)).name == "desk", "an older version of the gateway leaves it out"
    assert not KEY_FIELDS & set(KeyLimits.model_fields), "they share a column"
    assert KEY_FIELDS == COLUMN_FIELDS
    await store.close()
