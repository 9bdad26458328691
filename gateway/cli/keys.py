"""`stepgate keys create|list|revoke`."""

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.models import LOCAL_OWNER
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.session import operator, with_stepgate

if TYPE_CHECKING:
    from agent.core.keys import ApiKey
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="API keys: who may call the gateway, for what, and how much.", cls=Group)

DAY = 86_400.0


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    owner: Annotated[str, typer.Option(help="Whose things it reaches; keys of one owner share them.")] = LOCAL_OWNER,
    scopes: Annotated[
        str, typer.Option(help="What it allows, by commas: chat, agent, approve, ingest, mcp, metrics, admin.")
    ] = "chat,agent,approve,ingest,mcp",
    tools: Annotated[str | None, typer.Option(help="Only these tools, by commas; all when left out.")] = None,
    days: Annotated[float | None, typer.Option(help="Until it expires.", min=0.001)] = None,
    rpm: Annotated[int | None, typer.Option("--rpm", help="Requests a minute.", min=1)] = None,
    tpm: Annotated[int | None, typer.Option("--tpm", help="Tokens a minute.", min=1)] = None,
    parallel: Annotated[int | None, typer.Option(help="Runs at the same time.", min=1)] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="Tokens in all.", min=1)] = None,
    budget_usd: Annotated[float | None, typer.Option(help="Money in all, where prices are known.", min=0.0001)] = None,
) -> None:
    """Make a key. It is shown once, on stdout; only its hash is kept."""

    async def work(stepgate: "Stepgate") -> None:
        from agent.core.keys import KeyLimits  # noqa: PLC0415 - loaded with the engine

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
            _names(scopes) or [],
            tools=_names(tools),
            limits=limits,
            expires_at=None if days is None else time.time() + days * DAY,
            by=operator(),
        )
        for told in _pointless(key, stepgate):
            typer.echo(f"warning: {told}", err=True)
        typer.echo(f"key {key.id} of {key.owner} for {key.name}; it is shown only now:", err=True)
        typer.echo(text)

    with_stepgate(work)


@app.command("list")
def list_keys(
    owner: Annotated[str | None, typer.Option(help="Only keys of this owner.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the keys, oldest first, with what they have used."""

    async def work(stepgate: "Stepgate") -> None:
        keys = await stepgate.keys.list(owner)
        spent = {key.id: await stepgate.keys.spent(key.id) for key in keys}
        if as_json:
            typer.echo(json.dumps([_row(key, *spent[key.id]) for key in keys], indent=2, ensure_ascii=False))
            return
        if not keys:
            typer.echo("No keys yet; `stepgate keys create NAME` makes one.")
            return
        table = screen.Table(
            "id", "owner", "name", "scopes", "state", "last used", "tokens", "usd", "limits", box=None, pad_edge=False
        )
        for key in keys:
            table.add_row(
                key.id,
                screen.escape(key.owner),
                screen.escape(key.name),
                ",".join(sorted(key.scopes)),
                _state(key),
                _when(key.last_used_at) or "never",
                f"{spent[key.id][0]:,}",
                f"{spent[key.id][1]:.2f}",
                ", ".join(f"{name} {value:,}" for name, value in key.limits.model_dump(exclude_none=True).items()),
            )
        screen.print_table(table)

    with_stepgate(work)


@app.command()
def revoke(key_id: Annotated[str, typer.Argument(help="The key's id, the part after `sg_`.")]) -> None:
    """Take a key back; within seconds it opens nothing."""

    async def work(stepgate: "Stepgate") -> None:
        key = await stepgate.keys.revoke(key_id.removeprefix("sg_").partition("_")[0], by=operator())
        typer.echo(f"revoked {key.id} ({key.name} of {key.owner})")

    with_stepgate(work)


def _pointless(key: "ApiKey", stepgate: "Stepgate") -> list[str]:
    """What a key has been given that will not do what it is there for."""
    limits, settings = key.limits, stepgate.settings
    found = []
    for option, limit in (("--tpm", limits.tokens_per_minute), ("--budget-tokens", limits.budget_tokens)):
        if limit is not None and limit <= settings.llm_max_tokens:
            found.append(
                f"{option} {limit:,}: a model call takes its prompt and up to {settings.llm_max_tokens:,} tokens "
                "(AGENT_LLM_MAX_TOKENS), so that none fits unless the caller asks for a shorter reply"
            )
    if limits.budget_usd is not None and settings.llm_base_url is not None and not settings.model_prices:
        found.append(
            f"--budget-usd {limits.budget_usd:g}: only what the endpoint of AGENT_LLM_BASE_URL says a call has cost is "
            "counted (OpenRouter says it; OpenAI, vLLM and Ollama do not): set AGENT_MODEL_PRICES, or --budget-tokens"
        )
    unknown = [name for name in key.tools or () if "__" not in name and name not in stepgate.registry]
    if unknown:
        found.append(f"--tools: no tool is called {', '.join(unknown)}; see `stepgate tools list`")
    return found


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _state(key: "ApiKey") -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= time.time():
        return "expired"
    return "valid" if key.expires_at is None else f"until {_when(key.expires_at)}"


def _row(key: "ApiKey", tokens: int, usd: float) -> dict[str, object]:
    return {
        "id": key.id,
        "owner": key.owner,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "tools": key.tools,
        "limits": key.limits.model_dump(exclude_none=True),
        "state": _state(key),
        "last_used": _when(key.last_used_at),
        "used_tokens": tokens,
        "used_usd": usd,
    }


def _when(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
