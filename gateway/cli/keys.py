"""`stepgate keys create|list|set|revoke`."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.core.models import LOCAL_OWNER
from agent.storage.api_keys import KeyLimits, KeyOptions
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.model_options import add_fields
from gateway.cli.session import (
    Database,
    database_command,
    format_utc_time,
    gateway_command,
    get_operator_name,
    print_json,
)

if TYPE_CHECKING:
    from agent.storage.api_keys import ApiKey, KeyStore
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="API keys with scopes, limits and budgets.", cls=HelpfulGroup)

DAY_SECONDS = 86_400.0
KeyId = Annotated[str, typer.Argument(help="The key's id, the part after `sg_`.")]


@app.command()
@add_fields(KeyOptions, leave_out=("tools", "limits", "expires_at"))
@gateway_command()
async def create(
    stepgate: "Stepgate",
    name: Annotated[str, typer.Argument(help="A name that says what the key is for.")],
    owner: Annotated[str, typer.Option(help="The owner of its data; keys of one owner share it.")] = LOCAL_OWNER,
    scopes: Annotated[
        str, typer.Option(help="Scopes, separated by commas: chat, agent, approve, ingest, mcp, metrics, rooms, admin.")
    ] = "chat,agent,approve,ingest,mcp",
    tools: Annotated[str | None, typer.Option(help="Only these tools, separated by commas; default all.")] = None,
    days: Annotated[float | None, typer.Option(help="Days until it expires.", min=0.001)] = None,
    *,
    fields: dict[str, Any],
    rpm: Annotated[int | None, typer.Option("--rpm", help="Requests a minute.", min=1)] = None,
    tpm: Annotated[int | None, typer.Option("--tpm", help="Tokens a minute.", min=1)] = None,
    parallel: Annotated[int | None, typer.Option(help="Parallel runs.", min=1)] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="Total tokens.", min=1)] = None,
    budget_usd: Annotated[float | None, typer.Option(help="Total USD, if prices are known.", min=0.0001)] = None,
) -> None:
    """Create a key. It is printed once, on stdout; only its hash is stored."""
    limits = KeyLimits(
        requests_per_minute=rpm,
        tokens_per_minute=tpm,
        parallel_runs=parallel,
        budget_tokens=budget_tokens,
        budget_usd=budget_usd,
    )
    key, text = await stepgate.keys.create(
        owner,
        name,
        _split_names(scopes) or [],
        tools=_split_names(tools),
        limits=limits,
        expires_at=None if days is None else time.time() + days * DAY_SECONDS,
        by=get_operator_name(),
        **{name: value for name, value in fields.items() if value is not None},
    )
    for warning in _find_useless_limits(key, stepgate):
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"key {key.id} of {key.owner} for {key.name}; it is shown only once:", err=True)
    typer.echo(text)


@app.command("list")
@database_command
async def list_keys(
    database: Database,
    owner: Annotated[str | None, typer.Option(help="Only keys of this owner.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the keys, oldest first, with their usage."""
    store = _open_key_store(database)
    keys = await store.list_keys(owner)
    spent = {key.id: await store.get_usage(key.id) for key in keys}
    if as_json:
        print_json([_to_row(key, spent[key.id]) for key in keys])
        return
    if not keys:
        typer.echo("No keys yet; create one with `stepgate keys create NAME`.")
        return
    table = lazy_rich.Table(
        "id", "owner", "name", "scopes", "state", "last used", "tokens", "usd", "limits", box=None, pad_edge=False
    )
    for key in keys:
        table.add_row(
            key.id,
            lazy_rich.escape(key.owner),
            lazy_rich.escape(key.name),
            ",".join(sorted(key.scopes)),
            _format_state(key),
            _format_time(key.last_used_at) or "never",
            f"{spent[key.id][0]:,}",
            f"{spent[key.id][1]:.2f}",
            _format_limits(key),
        )
    lazy_rich.print_table(table)


@app.command("set")
@gateway_command()
async def set_limits(
    stepgate: "Stepgate",
    key_id: KeyId,
    rpm: Annotated[int | None, typer.Option("--rpm", help="Requests a minute; 0: no limit.", min=0)] = None,
    tpm: Annotated[int | None, typer.Option("--tpm", help="Tokens a minute; 0: no limit.", min=0)] = None,
    parallel: Annotated[int | None, typer.Option(help="Parallel runs; 0: no limit.", min=0)] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(help="Total tokens, including those used so far; 0: no limit.", min=0)
    ] = None,
    budget_usd: Annotated[
        float | None, typer.Option(help="Total USD, including those used so far; 0: no limit.", min=0)
    ] = None,
) -> None:
    """Change limits of a key; the others stay. A running gateway applies them within seconds."""
    options = {
        "requests_per_minute": rpm,
        "tokens_per_minute": tpm,
        "parallel_runs": parallel,
        "budget_tokens": budget_tokens,
        "budget_usd": budget_usd,
    }
    changes = {name: value or None for name, value in options.items() if value is not None}
    if not changes:
        raise typer.BadParameter("name a limit to change, such as --rpm 60; `stepgate keys list` shows those of a key")
    key = await stepgate.keys.change_limits(_read_id(key_id), changes, by=get_operator_name())
    for warning in _find_useless_limits(key, stepgate):
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"key {key.id} ({key.name} of {key.owner}): {_format_limits(key) or 'no limits'}")


@app.command()
@database_command
async def revoke(database: Database, key_id: KeyId) -> None:
    """Revoke a key; it stops working within seconds."""
    key = await _open_key_store(database).revoke(_read_id(key_id), by=get_operator_name())
    typer.echo(f"revoked {key.id} ({key.name} of {key.owner})")


def _read_id(written: str) -> str:
    """The id in what was written: it alone, or with the parts around it in the key's text."""
    return written.removeprefix("sg_").partition("_")[0]


def _format_limits(key: "ApiKey") -> str:
    return ", ".join(f"{name} {value:,}" for name, value in key.limits.model_dump(exclude_none=True).items())


def _open_key_store(database: Database) -> "KeyStore":
    from agent.storage.api_keys import KeyStore  # noqa: PLC0415 - the store; `--help` needs none

    return KeyStore(database.statements, database.store.clock, database.audit)


def _find_useless_limits(key: "ApiKey", stepgate: "Stepgate") -> list[str]:
    """Warnings about limits that cannot do what they are meant for."""
    limits, settings = key.limits, stepgate.settings
    useless_limits = []
    for option, limit in (("--tpm", limits.tokens_per_minute), ("--budget-tokens", limits.budget_tokens)):
        if limit is not None and settings.llm_max_tokens is not None and limit <= settings.llm_max_tokens:
            useless_limits.append(
                f"{option} {limit:,}: a model call takes its prompt and up to {settings.llm_max_tokens:,} tokens "
                "(AGENT_LLM_MAX_TOKENS), so that none fits unless the caller asks for a shorter reply"
            )
    if limits.budget_usd is not None and settings.llm_base_url is not None and not settings.model_prices:
        useless_limits.append(
            f"--budget-usd {limits.budget_usd:g}: only what the endpoint of AGENT_LLM_BASE_URL says a call has cost is "
            "counted (OpenRouter says it; OpenAI, vLLM and Ollama do not): set AGENT_MODEL_PRICES, or --budget-tokens"
        )
    unknown = [name for name in key.tools or () if "__" not in name and name not in stepgate.registry]
    if unknown:
        useless_limits.append(f"--tools: no tool is called {', '.join(unknown)}; see `stepgate tools list`")
    return useless_limits


def _split_names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _format_state(key: "ApiKey") -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= time.time():
        return "expired"
    return "valid" if key.expires_at is None else f"until {_format_time(key.expires_at)}"


def _to_row(key: "ApiKey", usage: tuple[int, float]) -> dict[str, object]:
    """The fields that the route sends of a key, and those that only the command shows."""
    from gateway.doors.key_forms import to_item  # noqa: PLC0415 - loaded with the engine

    tokens, usd = usage
    return to_item(key, usage).model_dump(mode="json") | {
        "limits": key.limits.model_dump(exclude_none=True),
        "state": _format_state(key),
        "last_used": _format_time(key.last_used_at),
        "used_tokens": tokens,
        "used_usd": usd,
    }


def _format_time(at: float | None) -> str | None:
    return None if at is None else format_utc_time(at)
