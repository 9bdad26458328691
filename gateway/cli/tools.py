"""`stepgate tools list|call`."""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agent.core.models import AgentRequest, JsonObject
from gateway.bootstrap import Stepgate
from gateway.cli.session import with_stepgate

app = typer.Typer(help="Tools: what plans and skills may call, and one call by hand.", no_args_is_help=True)


@app.command("list")
def list_tools() -> None:
    """List the tools with their effect class."""

    async def work(stepgate: Stepgate) -> None:
        table = Table("tool", "effect", "arguments", "description", box=None)
        for spec in stepgate.registry.specs():
            properties = spec.input_schema.get("properties")
            names = ", ".join(properties) if isinstance(properties, dict) else ""
            table.add_row(spec.name, spec.effect, names, spec.description.split(". ")[0].rstrip("."))
        Console().print(table)

    with_stepgate(work)


@app.command()
def call(
    name: Annotated[str, typer.Argument(help="The tool.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="key=value pairs, or one JSON object.")] = None,
) -> None:
    """Call one tool through the gateway: validated, limited, recorded as a run."""
    request = AgentRequest(metadata={"tool_calls": [{"tool": name, "args": parse_arguments(arguments or [])}]})

    async def work(stepgate: Stepgate) -> int:
        response = await stepgate.service.response(await stepgate.service.start(request))
        results = response.metadata.get("tool_results") or []
        failed = not results or any(result.get("error_code") for result in results)
        print(response.response, file=sys.stderr if failed else sys.stdout)
        return 1 if failed else 0

    raise SystemExit(with_stepgate(work))


def parse_arguments(pairs: list[str]) -> JsonObject:
    """`{"a": 1}` or `a=1 b=text`; a value that reads as JSON is taken as such."""
    if len(pairs) == 1 and pairs[0].lstrip().startswith("{"):
        try:
            value = json.loads(pairs[0])
        except json.JSONDecodeError as error:
            raise typer.BadParameter(f"no valid JSON: {error}") from error
        return dict(value)
    arguments: JsonObject = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"{pair!r} is no key=value pair")
        try:
            arguments[key] = json.loads(text)
        except json.JSONDecodeError:
            arguments[key] = text
    return arguments
