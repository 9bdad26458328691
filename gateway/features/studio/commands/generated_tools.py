"""`stepgate tools generate|show|versions|apply|discard|refine|restore|remove`: the commands of generated tools."""

import difflib
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.core.errors import AgentError
from agent.core.models import LOCAL_OWNER
from agent.core.principal import Principal
from gateway.cli import lazy_rich
from gateway.cli.model_options import add_fields
from gateway.cli.session import AsyncCommand, gateway_command, get_operator_name, print_json
from gateway.features.studio.engine.generated_tools.models import Manifest, ToolRequest
from gateway.features.studio.parts import get_studio

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.direct_model import DirectModel
    from gateway.features.studio.engine.generated_tools.models import ToolVersion

Name = Annotated[str, typer.Argument(help="The tool's name.")]
Version = Annotated[int | None, typer.Option(min=1, help="Its version; default: the newest one.")]
Owner = Annotated[str, typer.Option(help="Whose tools.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Sha = Annotated[str | None, typer.Option("--sha256", help="Fail unless the version is the one that was reviewed.")]
Hosts = Annotated[list[str] | None, typer.Option("--host", help="A web host that it may read; repeatable.")]
Folders = Annotated[list[str] | None, typer.Option("--folder", help="A folder that it may read; repeatable.")]
Tools = Annotated[list[str] | None, typer.Option("--tool", help="A tool that it may call; repeatable.")]


def _make_tool_command(work: AsyncCommand) -> Callable[..., None]:
    """As `gateway_command`; an error is printed with the check that refused."""

    @gateway_command(foreign="remembered")
    @wraps(work)
    async def command(*given: Any, **options: Any) -> int | None:
        try:
            return await work(*given, **options)
        except AgentError as error:
            stage = error.details.get("stage")
            print(f"{error.message}{f' (stage: {stage})' if stage else ''}", file=sys.stderr)
            return 1

    return command


@add_fields(ToolRequest, arguments=("description",), leave_out=("permissions", "earlier_code"))
@_make_tool_command
async def generate(
    stepgate: "Stepgate",
    fields: dict[str, Any],
    host: Hosts = None,
    folder: Folders = None,
    tool: Tools = None,
    owner: Owner = LOCAL_OWNER,
    as_json: AsJson = False,
) -> None:
    """Make a tool with the model: tests, code, checks, review. It is staged, not in use."""
    made = await get_studio(stepgate).generated_tools.generate(
        _act_for(owner),
        ToolRequest(**fields, permissions=_read_permissions(host, folder, tool)),
        model=_build_model(stepgate, owner),
        report=_report,
    )
    await _print_version(stepgate, owner, made, as_json=as_json)


@_make_tool_command
async def refine(
    stepgate: "Stepgate",
    name: Name,
    change: Annotated[str, typer.Argument(help="What should change.")],
    host: Hosts = None,
    folder: Folders = None,
    tool: Tools = None,
    owner: Owner = LOCAL_OWNER,
    as_json: AsJson = False,
) -> None:
    """Make a changed version of a tool. It is staged; the version in use stays."""
    made = await get_studio(stepgate).generated_tools.refine(
        _act_for(owner),
        name,
        ToolRequest(change, permissions=_read_permissions(host, folder, tool)),
        model=_build_model(stepgate, owner),
        report=_report,
    )
    await _print_version(stepgate, owner, made, as_json=as_json)


@_make_tool_command
async def show(
    stepgate: "Stepgate", name: Name, version: Version = None, owner: Owner = LOCAL_OWNER, as_json: AsJson = False
) -> None:
    """Print a generated tool: its code, tests, permissions and review."""
    generated_tool = await get_studio(stepgate).generated_tools.get(_act_for(owner), name, version)
    await _print_version(stepgate, owner, generated_tool, as_json=as_json)


@_make_tool_command
async def list_versions(stepgate: "Stepgate", name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """List the versions of a generated tool, the newest first."""
    for one in await get_studio(stepgate).generated_tools.list_versions(_act_for(owner), name):
        print(f"{one.version}  {one.state}{', in use' if one.is_active else ''}  {one.sha256[:12]}  {one.author}")


@_make_tool_command
async def apply(
    stepgate: "Stepgate",
    name: Name,
    version: Version = None,
    sha256: Sha = None,
    owner: Owner = LOCAL_OWNER,
    yes: Yes = False,
) -> None:
    """Put a staged version into use, after showing its code, or its changes."""
    tools = get_studio(stepgate).generated_tools
    chosen = await tools.get(_act_for(owner), name, version)
    await _confirm(stepgate, owner, chosen, yes=yes)
    applied = await tools.apply(_act_for(owner), name, version=chosen.version, sha256=sha256 or chosen.sha256)
    print(f"{name}, version {applied.version}, is in use in the rooms that name it.")


@_make_tool_command
async def restore(
    stepgate: "Stepgate",
    name: Name,
    version: Annotated[int, typer.Argument(min=1, help="A version that was in use before.")],
    sha256: Sha = None,
    owner: Owner = LOCAL_OWNER,
    yes: Yes = False,
) -> None:
    """Put an earlier version into use again."""
    tools = get_studio(stepgate).generated_tools
    chosen = await tools.get(_act_for(owner), name, version)
    await _confirm(stepgate, owner, chosen, yes=yes)
    await tools.restore(_act_for(owner), name, version, sha256=sha256 or chosen.sha256)
    print(f"{name}, version {version}, is in use again.")


@_make_tool_command
async def discard(stepgate: "Stepgate", name: Name, version: Version = None, owner: Owner = LOCAL_OWNER) -> None:
    """Discard a staged version."""
    discarded = await get_studio(stepgate).generated_tools.discard(_act_for(owner), name, version=version)
    print(f"{name}, version {discarded.version}, is discarded.")


@_make_tool_command
async def remove(stepgate: "Stepgate", name: Name, owner: Owner = LOCAL_OWNER, yes: Yes = False) -> None:
    """Delete a generated tool with all of its versions."""
    await get_studio(stepgate).generated_tools.get(_act_for(owner), name)
    if not yes:
        typer.confirm(f"Delete {name} with all of its versions?", abort=True, err=True)
    count = await get_studio(stepgate).generated_tools.remove(_act_for(owner), name)
    print(f"{name} is deleted ({count} {'version' if count == 1 else 'versions'}).")


@_make_tool_command
async def list_generated(stepgate: "Stepgate", owner: str) -> None:
    """Prints the generated tools, each with its newest version."""
    tools = await get_studio(stepgate).generated_tools.list_tools(_act_for(owner))
    lazy_rich.print_rows(
        ("tool", "version", "state", "in use", "description"),
        [(one.name, str(one.version), one.state, "yes" if one.is_active else "no", one.description) for one in tools],
    )


def _act_for(owner: str) -> Principal:
    return Principal(owner, display_name=get_operator_name(), is_operator=True)


def _report(line: str) -> None:
    print(line, file=sys.stderr)


def _build_model(stepgate: "Stepgate", owner: str) -> "DirectModel":
    """The model that makes the tool. Raises `ModelNotConfiguredError`, before any progress is printed."""
    from gateway.direct_model import DirectModel  # noqa: PLC0415 - with the engine, which help does not need

    stepgate.models.require()
    settings = stepgate.settings
    return DirectModel(
        stepgate.models,
        stepgate.rooms.get(None, owner),
        stepgate.quotas,
        None,
        settings.list_secrets(),
        settings.llm_base_url,
    )


def _read_permissions(hosts: list[str] | None, folders: list[str] | None, tools: list[str] | None) -> Manifest | None:
    """The most that a tool may ask for; None if nothing was said."""
    if hosts is None and folders is None and tools is None:
        return None
    return Manifest(hosts=tuple(hosts or ()), folders=tuple(folders or ()), tools=tuple(tools or ()))


async def _confirm(stepgate: "Stepgate", owner: str, chosen: "ToolVersion", *, yes: bool) -> None:
    """Shows what is decided about, and asks. Nothing is shown with `yes`."""
    if yes:
        return
    active = await get_studio(stepgate).generated_tools.get_active(_act_for(owner), chosen.name)
    if active is None:
        print(chosen.code, file=sys.stderr)
    else:
        names = (f"version {active.version}", f"version {chosen.version}")
        lines = difflib.unified_diff(active.code.splitlines(), chosen.code.splitlines(), *names, lineterm="")
        print("\n".join(lines), file=sys.stderr)
    wider = await get_studio(stepgate).generated_tools.list_wider(_act_for(owner), chosen)
    print(f"More than the version in use it may: {', '.join(wider) or 'nothing'}.", file=sys.stderr)
    print(*chosen.notices, f"{len(chosen.tests)} tests passed in the sandbox.", sep="\n", file=sys.stderr)
    typer.confirm(f"Use {chosen.name}, version {chosen.version} (sha256 {chosen.sha256[:12]})?", abort=True, err=True)


async def _print_version(stepgate: "Stepgate", owner: str, version: "ToolVersion", *, as_json: bool) -> None:
    wider = await get_studio(stepgate).generated_tools.list_wider(_act_for(owner), version)
    if as_json:
        version_fields = asdict(version)
        version_fields |= {
            "manifest": version.manifest.model_dump(),
            "review": version.review.model_dump(),
            "wider": wider,
        }
        print_json(version_fields)
        return
    print(f"{version.name}, version {version.version}, {version.state}{', in use' if version.is_active else ''}")
    print(f"{version.description}\nsha256 {version.sha256}; sandbox: {version.tier}")
    print(f"Permissions beyond the version in use: {', '.join(wider) or 'none'}")
    for notice in version.notices:
        print(f"Noticed: {notice}")
    for line in (*version.review.issues, *version.review.suggestions):
        print(f"Review ({version.review.severity}): {line}")
    print(f"\n{version.code}")
    for number, case in enumerate(version.tests, start=1):
        print(f"# test {number}\n{case}\n")
