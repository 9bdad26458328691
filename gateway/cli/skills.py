"""`stepgate skills list|validate`."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from agent.skills import Skill, SkillLibrary, skill_roots, validate_skill
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.session import settings_of_command
from gateway.home import HOME

app = typer.Typer(help="Skills: what this gateway can do, and whether a folder is a valid skill.", cls=Group)


@app.command("list")
def list_skills() -> None:
    """List the skills, where they come from and what they may call."""
    library = _library()
    console = screen.Console()
    for skill in library:
        name, *rest = _lines(skill, console.width)
        console.print(
            f"[bold]{screen.escape(name)}[/bold]", *map(screen.escape, rest), sep="\n", highlight=False, soft_wrap=True
        )
    for diagnostic in library.diagnostics:
        console.print(f"[yellow]note:[/yellow] {screen.escape(diagnostic)}", highlight=False, soft_wrap=True)


@app.command()
def validate(
    folders: Annotated[list[Path] | None, typer.Argument(help="Skill folders; all loaded skills when none.")] = None,
) -> None:
    """Check skill folders with the public validator of the format."""
    wanted = folders or [skill.folder for skill in _library() if not skill.is_flat]
    failed = 0
    for folder in wanted:
        problems = validate_skill(folder)
        failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {folder}")
        for problem in problems:
            print(f"     {problem}")
    if failed:
        raise SystemExit(1)


def _lines(skill: Skill, width: int) -> list[str]:
    """A skill in two lines, cut between words."""
    tools = " ".join(skill.allowed_tools) or "no tools"
    return [
        textwrap.shorten(f"{skill.name} ({skill.origin}): {tools}", width, placeholder=" …"),
        "  " + textwrap.shorten(skill.description, max(20, width - 2), placeholder=" …"),
    ]


def _library() -> SkillLibrary:
    settings = settings_of_command()
    return SkillLibrary.load(skill_roots(settings, shipped=HOME / "skills", cwd=Path.cwd(), home=Path.home()))
