"""The table of `make eval-bfcl`: right cases by category and column, what they took, and the two aims."""

from collections.abc import Mapping, Sequence

from gateway.features.evaluation.report import ERROR_STATUS, format_table
from tests.bench.function_calls.cases import IRRELEVANCE, Case, CaseReply, ColumnName
from tests.bench.function_calls.columns import Replies

LEAD_AIM = 5.0
"""Points by which the gateway's share of right cases should be above the better bare column."""
IRRELEVANCE_AIM = 80.0
"""Per cent of the cases without a fitting function that end without a call."""
BARE: tuple[ColumnName, ...] = ("native", "prompting")

Faults = Mapping[tuple[ColumnName, str], str]
"""What is wrong with a column's answer to a case, "" if it is right."""


def is_right(column: ColumnName, case_id: str, replies: Replies, faults: Faults) -> bool:
    """Whether an answer came and is right. A refused or failed request is not, even where no call should be made."""
    return replies[column][case_id].status == "answered" and not faults[column, case_id]


def format_results(cases: Sequence[Case], replies: Replies, faults: Faults) -> str:
    """Formats the table and the aims."""
    families = list(dict.fromkeys(case.family for case in cases))
    rows = [
        [family, *(_format_right(name, [c for c in cases if c.family == family], replies, faults) for name in replies)]
        for family in families
    ]
    rows.append(["all", *(_format_right(name, cases, replies, faults) for name in replies)])
    measured = {name: [replies[name][case.id] for case in cases] for name in replies}
    rows += [
        ["tokens a case", *(f"{_mean([reply.tokens for reply in measured[name]]):.0f}" for name in replies)],
        ["seconds a case", *(f"{_mean([reply.seconds for reply in measured[name]]):.1f}" for name in replies)],
        ["approvals asked for", *(str(sum(reply.questions for reply in measured[name])) for name in replies)],
        ["refused, failed", *(_count_unanswered(measured[name]) for name in replies)],
    ]
    table = format_table(("category", *replies, ""), [[*row, ""] for row in rows])
    return "\n".join([table, "", *_list_aims(cases, replies, faults)])


def _format_right(column: ColumnName, cases: Sequence[Case], replies: Replies, faults: Faults) -> str:
    right = sum(is_right(column, case.id, replies, faults) for case in cases)
    return f"{right} of {len(cases)} ({_percent(right, len(cases)):.1f} %)"


def _count_unanswered(replies: Sequence[CaseReply]) -> str:
    statuses = [reply.status for reply in replies]
    return f"{statuses.count('refused')}, {statuses.count(ERROR_STATUS)}"


def _list_aims(cases: Sequence[Case], replies: Replies, faults: Faults) -> list[str]:
    """One line for each aim that these columns and categories allow to judge."""
    if "gateway" not in replies:
        return []
    shares = {
        name: _percent(sum(is_right(name, case.id, replies, faults) for case in cases), len(cases)) for name in replies
    }
    lines = []
    bare = {name: shares[name] for name in BARE if name in shares}
    if bare:
        best = max(bare, key=lambda name: bare[name])
        lead = shares["gateway"] - bare[best]
        verdict = _judge(is_met=lead >= LEAD_AIM)
        lines.append(f"gateway over the better bare column ({best}): {lead:+.1f} points, aim +{LEAD_AIM:g}: {verdict}")
    refusable = [case for case in cases if case.family.endswith(IRRELEVANCE)]
    if refusable:
        share = _percent(sum(is_right("gateway", case.id, replies, faults) for case in refusable), len(refusable))
        verdict = _judge(is_met=share >= IRRELEVANCE_AIM)
        lines.append(f"gateway, irrelevance: {share:.1f} %, aim {IRRELEVANCE_AIM:g} %: {verdict}")
    return lines


def format_faults(cases: Sequence[Case], replies: Replies, faults: Faults) -> str:
    """Formats one line for each answer that is not right."""
    return "\n".join(
        f"{name} {case.id}: {replies[name][case.id].error or faults[name, case.id]}"[:200]
        for case in cases
        for name in replies
        if not is_right(name, case.id, replies, faults)
    )


def _judge(*, is_met: bool) -> str:
    return "met" if is_met else "missed"


def _percent(part: int, whole: int) -> float:
    return 100 * part / max(1, whole)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
