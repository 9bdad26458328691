"""`stepgate skills list|validate`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agent.skills import SkillLibrary, skill_roots, validate_skill
from gateway.bootstrap import HOME
from gateway.cli.session import settings_of_command

app = typer.Typer(help="Skills: what this gateway can do, and whether a folder is a valid skill.", no_args_is_help=True)


@app.command("list")
def list_skills() -> None:
    """List the skills, where they come from and what they may call."""
    library = _library()
    table = Table("skill", "origin", "tools", "description", box=None)
    for skill in library:
        table.add_row(
            *map(escape, (skill.name, skill.origin, " ".join(skill.allowed_tools) or "-", skill.description[:80]))
        )
    console = Console()
    console.print(table)
    for diagnostic in library.diagnostics:
        console.print(f"[yellow]note:[/yellow] {escape(diagnostic)}", highlight=False)


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


def _library() -> SkillLibrary:
    settings = settings_of_command()
    return SkillLibrary.load(skill_roots(settings, shipped=HOME / "skills", cwd=Path.cwd(), home=Path.home()))
