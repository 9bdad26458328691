"""`stepgate doctor`: what is configured, what is reachable, and what to do about what is not."""

import asyncio
import logging

from agent.core.config_loading import load_what_is_right, unknown_settings
from gateway.cli import screen
from gateway.cli.session import read_provider_keys, set_up_logging
from gateway.loading import Loading


def doctor() -> None:
    """Check the configuration, the store, the models, skills and files; exit code 1 when something is broken."""
    unknown = unknown_settings()
    read_provider_keys()
    settings, wrong = load_what_is_right()
    set_up_logging(settings, logging.ERROR)
    with Loading():
        from gateway.cli.checks import Finding, findings  # noqa: PLC0415 - all of the engine; other commands need less

    async def report() -> int:
        console, broken = screen.Console(), 0
        async for finding in findings(settings, wrong=wrong, unknown=unknown):
            _print(console, finding)
            broken += finding.fatal and not finding.ok
        return 1 if broken else 0

    def _print(console: "screen.Console", finding: Finding) -> None:
        mark = "[green]ok  [/green]" if finding.ok else "[red]FAIL[/red]" if finding.fatal else "[yellow]note[/yellow]"
        detail = screen.escape(finding.detail.replace("\n", " "))
        console.print(f"{mark} {finding.name}: {detail}", highlight=False, soft_wrap=True)
        if not finding.ok and finding.remedy:
            console.print(f"       do: {screen.escape(finding.remedy)}", highlight=False, soft_wrap=True)

    raise SystemExit(asyncio.run(report()))
