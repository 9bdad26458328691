"""Prints the report of a dry run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.ingest.dry_run_report import ValidationReport

_VERDICTS = {
    "ready": "ready",
    "needs_adjustment": "usable, but check the failures",
    "blocking_issues": "not ready: too many files cannot be read",
}


def print_dry_run(report: "ValidationReport") -> None:
    """Prints what a pipeline would make of a source."""
    print(f"{_VERDICTS[report.assessment]}. {report.summary}")
    print(f"tried {report.files_tested} of {report.files_found} files; nothing was written")
    stats = report.chunk_stats
    if stats.count:
        print(
            f"passages: {stats.count}, of {stats.min} to {stats.max} characters (median {stats.median:g}, "
            f"95 % within {stats.p95}); {stats.empty} empty, {stats.duplicates} twice"
        )
    print("seconds: " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in report.stage_timings.items()))
    for name, category in report.failure_categories.items():
        print(f"{name}: {category.count}" + (f"; {category.suggested_fix}" if category.suggested_fix else ""))
        for one in [file for file in report.files if file.source in category.examples]:
            print(f"  {one.name}: {one.message} ({one.error_code})")
    for uncertainty in report.uncertainties:
        if uncertainty.severity == "info":
            print(f"note: {uncertainty.message}")
