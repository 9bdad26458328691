"""The tables of `make eval-chat`: passed checks by check and by kind of chat, and the times of first tokens."""

from collections.abc import Mapping, Sequence
from statistics import median

from gateway.features.evaluation.report import format_table
from tests.bench.everyday_chat.chats import Chat, ChatAnswer
from tests.bench.everyday_chat.checks import CHECKS, Failures

FIRST_TOKEN_AIM_SECONDS = 1.5
"""How much later than the bare model's the gateway's first token may come."""

Answers = Mapping[str, Mapping[str, ChatAnswer]]
"""By writer and chat."""
Checked = Mapping[str, Mapping[str, Failures]]
"""What was checked, by writer and chat."""


def format_checks(chats: Sequence[Chat], checked: Checked) -> str:
    """Formats how many answers pass each check, then all checks, by kind of chat."""
    rows = [
        [name, *(_count_passed([checked[writer][chat.id] for chat in chats], name) for writer in checked), ""]
        for name in CHECKS
        if any(name in checked[writer][chat.id] for writer in checked for chat in chats)
    ]
    kinds = list(dict.fromkeys(chat.kind for chat in chats))
    rows += [
        [f"all checks, {kind}", *(_count_clean([c for c in chats if c.kind == kind], checked[w]) for w in checked), ""]
        for kind in kinds
    ]
    rows.append(["all checks", *(_count_clean(chats, checked[writer]) for writer in checked), ""])
    return format_table(("check", *checked, ""), rows)


def _count_passed(failures: Sequence[Failures], name: str) -> str:
    applied = [one[name] for one in failures if name in one]
    return f"{sum(not failure for failure in applied)} of {len(applied)}"


def _count_clean(chats: Sequence[Chat], checked: Mapping[str, Failures]) -> str:
    return f"{sum(not any(checked[chat.id].values()) for chat in chats)} of {len(chats)}"


def format_times(chats: Sequence[Chat], answers: Answers) -> str:
    """Formats the seconds to the first token and to the end, and how much later the gateway's first tokens come."""
    rows = []
    for writer, written in answers.items():
        times = [written[chat.id].first_token_seconds for chat in chats]
        firsts = [seconds for seconds in times if seconds is not None]
        wholes = [written[chat.id].seconds for chat in chats]
        rows.append([writer, *_summarize(firsts), *_summarize(wholes), ""])
    heads = ("answers of", "first token, median s", "most", "whole answer, median s", "most", "")
    return f"{format_table(heads, rows)}\n\n{_compare_first_tokens(chats, answers)}"


def _summarize(seconds: Sequence[float]) -> tuple[str, str]:
    return (f"{median(seconds):.2f}", f"{max(seconds):.2f}") if seconds else ("-", "-")


def _compare_first_tokens(chats: Sequence[Chat], answers: Answers) -> str:
    ours, theirs = answers.values()
    pairs = [(ours[chat.id].first_token_seconds, theirs[chat.id].first_token_seconds) for chat in chats]
    later = [mine - other for mine, other in pairs if mine is not None and other is not None]
    if not later:
        return "first tokens were not measured"
    late = sum(delay > FIRST_TOKEN_AIM_SECONDS for delay in later)
    return (
        f"first token of {next(iter(answers))} after that of {list(answers)[1]}: median {median(later):+.2f} s, most "
        f"{max(later):+.2f} s; more than {FIRST_TOKEN_AIM_SECONDS:g} s in {late} of {len(later)}"
    )


def format_failures(chats: Sequence[Chat], checked: Checked) -> str:
    """Formats one line for each check that an answer does not pass."""
    return "\n".join(
        f"{writer} {chat.id}: {name}: {failure}"[:200]
        for chat in chats
        for writer in checked
        for name, failure in checked[writer][chat.id].items()
        if failure
    )
