"""`stepgate skills list|validate`."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from agent.skills import Skill, SkillLibrary, list_skill_roots, validate_skill
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import load_command_settings
from gateway.packaged_files import PACKAGE_ROOT

app = typer.Typer(help="Skills: list skills, check skill folders.", cls=HelpfulGroup)


@app.command("list")
def list_skills() -> None:
    """List the skills, their origin and their allowed tools."""
    library = _load_skills()
    console = lazy_rich.Console()
    for skill in library:
        name, *rest = _format_skill(skill, console.width)
        console.print(
            f"[bold]{lazy_rich.escape(name)}[/bold]",
            *map(lazy_rich.escape, rest),
            sep="\n",
            highlight=False,
            soft_wrap=True,
        )
    for diagnostic in library.diagnostics:
        console.print(f"[yellow]note:[/yellow] {lazy_rich.escape(diagnostic)}", highlight=False, soft_wrap=True)


@app.command()
def validate(
    folders: Annotated[list[Path] | None, typer.Argument(help="Skill folders; default all loaded skills.")] = None,
) -> None:
    """Check skill folders with the public validator of the format."""
    wanted = folders or [skill.folder for skill in _load_skills() if not skill.is_flat]
    failed = 0
    for folder in wanted:
        problems = validate_skill(folder)
        failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {folder}")
        for problem in problems:
            print(f"     {problem}")
    if failed:
        raise SystemExit(1)


def _format_skill(skill: Skill, width: int) -> list[str]:
    """A skill as two lines, cut between words."""
    tools = " ".join(skill.allowed_tools) or "no tools"
    return [
        textwrap.shorten(f"{skill.name} ({skill.origin}): {tools}", width, placeholder=" …"),
        "  " + textwrap.shorten(skill.description, max(20, width - 2), placeholder=" …"),
    ]


def _load_skills() -> SkillLibrary:
    settings = load_command_settings()
    return SkillLibrary.load(list_skill_roots(settings, shipped=PACKAGE_ROOT / "skills"))
