"""`stepgate doctor`: what is configured, what can be reached, and what to do about what cannot."""

import asyncio
import logging

from agent.core.settings.loading import load_valid_settings
from gateway.cli import lazy_rich
from gateway.cli.doctor_finding import DoctorFinding
from gateway.cli.session import read_provider_keys, set_up_logging
from gateway.feature_settings import find_unknown_names
from gateway.quiet_interrupt import QuietInterrupt


def doctor() -> None:
    """Check the configuration, store, models, skills and files; exit code 1 if something is broken."""
    unknown = find_unknown_names()
    read_provider_keys()
    settings, wrong = load_valid_settings()
    set_up_logging(settings, logging.ERROR)
    with QuietInterrupt():
        from gateway.cli.doctor_checks import run_checks  # noqa: PLC0415 - all of the engine; other commands need less

    async def report() -> int:
        console, broken = lazy_rich.Console(), 0
        async for finding in run_checks(settings, wrong=wrong, unknown=unknown):
            _print(console, finding)
            broken += finding.fatal and not finding.ok
        return 1 if broken else 0

    def _print(console: "lazy_rich.Console", finding: DoctorFinding) -> None:
        mark = "[green]ok  [/green]" if finding.ok else "[red]FAIL[/red]" if finding.fatal else "[yellow]note[/yellow]"
        detail = lazy_rich.escape(finding.detail.replace("\n", " "))
        console.print(f"{mark} {finding.name}: {detail}", highlight=False, soft_wrap=True)
        if not finding.ok and finding.remedy:
            console.print(f"       do: {lazy_rich.escape(finding.remedy)}", highlight=False, soft_wrap=True)

    raise SystemExit(asyncio.run(report()))
