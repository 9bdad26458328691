"""What the conformance suite said, and the table of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario at one revision; only the required ones count."""

    revision: str
    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it went: the suite's checks by verdict, and a line for each that is no success."""

    scenario: Scenario
    passed: bool = False
    succeeded: int = 0
    failed: int = 0
    warned: int = 0
    skipped: int = 0
    exercised: bool = False
    faults: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """`pass`, `FAIL`, or `n/a` where the suite found nothing it could check."""
        if self.passed and not self.exercised:
            return "n/a "
        return "pass" if self.passed else "FAIL"


def required(requirements: str) -> list[str]:
    """The server scenarios in a requirement file of the suite."""
    names = yaml.safe_load(requirements)["server"]
    return [str(name) for name in names]


def outcome_of(scenario: Scenario, checks: Sequence[dict[str, Any]], exit_code: int | None) -> Outcome:
    """Passed where the suite's own exit code says so and no check failed."""
    counts = Counter(str(check["status"]) for check in checks)
    # The suite adds a check of every message's shape to each scenario; alone it says nothing of the scenario's subject.
    exercised = any(one["status"] == "SUCCESS" and not str(one["id"]).startswith("wire-schema") for one in checks)
    faults = tuple(
        f"{check['status']} {check['id']}: {check.get('errorMessage', '')}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    )
    return Outcome(
        scenario,
        passed=exit_code == 0 and not counts["FAILURE"] and bool(checks),
        succeeded=counts["SUCCESS"],
        failed=counts["FAILURE"],
        warned=counts["WARNING"],
        skipped=counts["SKIPPED"],
        exercised=exercised,
        faults=faults,
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """Markdown: totals for each revision, then every scenario."""
    lines = [
        "| revision | required | passed | checks | failed | warnings |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for revision in dict.fromkeys(outcome.scenario.revision for outcome in outcomes):
        counted = [one for one in outcomes if one.scenario.revision == revision and one.scenario.required]
        checks, failed, warned = (
            sum(getattr(one, key) for one in counted) for key in ("succeeded", "failed", "warned")
        )
        passed = sum(one.passed for one in counted)
        lines.append(f"| {revision} | {len(counted)} | {passed} | {checks} | {failed} | {warned} |")
    lines += ["", "| revision | scenario | counts | result | succeeded | failed | warnings | skipped |"]
    lines += ["| --- | --- | --- | --- | ---: | ---: | ---: | ---: |"]
    for one in outcomes:
        what = one.scenario
        counts = "yes" if what.required else "no"
        figures = f"{one.succeeded} | {one.failed} | {one.warned} | {one.skipped}"
        lines.append(f"| {what.revision} | {what.name} | {counts} | {one.mark.strip()} | {figures} |")
    return "\n".join(lines)
