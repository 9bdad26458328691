"""What is doubtful about a source, told by what was counted and tried: scanned pages, mixed languages, code and prose,
files that nobody can read."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agent.core.language import name_of
from agent.core.models import JsonObject
from agent.core.subagents import Severity, Uncertainty
from agent.subagents.reading_tools import LanguageFound, ParserTrial
from agent.subagents.source_tools import EnumerateOutput

EXAMPLES = 5
SCANNED = "hold scanned pages; they have to be read by OCR"
"""How a doubt about scans ends; whoever then wants OCR has settled it."""
NOTABLE_SHARE = 0.1
"""Of all files, from which those that cannot be read are worth a decision."""

_FAULTS: Mapping[str, tuple[str, str]] = {
    "ERR_PARSER_ENCRYPTED": ("encrypted_files", "open with a password only"),
    "ERR_PARSER_CORRUPT": ("corrupted_files", "are damaged or unsafe to unpack"),
    "ERR_PARSER_UNSUPPORTED": ("mislabelled_files", "are not what their names say"),
    "ERR_TIMEOUT": ("slow_files", "took too long to read"),
    "ERR_TOO_LARGE": ("large_files", "are larger than a parser opens"),
}
"""A quality issue by the error that shows it, and what is the matter with the files."""


def issues(trials: Sequence[ParserTrial], languages: Sequence[LanguageFound]) -> list[str]:
    """The names of what is the matter, as `quality_issues` lists them."""
    found = [name for code, (name, _) in _FAULTS.items() if any(_fails_by(trial, code) for trial in trials)]
    if any(trial.scanned for trial in trials):
        found.insert(0, "scanned_pdfs")
    if any(_is_empty(trial) for trial in trials):
        found.append("empty_files")
    if len(_spoken(languages)) > 1:
        found.append("mixed_languages")
    if _has_code_and_prose(trials):
        found.append("code_and_prose")
    return found


def doubts(
    counts: EnumerateOutput | None, trials: Sequence[ParserTrial], languages: Sequence[LanguageFound]
) -> tuple[Uncertainty, ...]:
    """Everything a person should know before a pipeline is built, the worst first."""
    found = [*_of_counts(counts), *_of_trials(trials), *_of_content(trials, languages)]
    order: tuple[Severity, ...] = ("blocking", "notable", "info")
    return tuple(sorted(found, key=lambda one: order.index(one.severity)))


def _of_counts(counts: EnumerateOutput | None) -> Iterator[Uncertainty]:
    if counts is None:
        yield Uncertainty(severity="notable", message="the source was not listed to its end")
        return
    if not counts.total_files:
        yield Uncertainty(severity="blocking", message="there is no file at this source")
    if counts.note:
        yield Uncertainty(severity="notable", message=counts.note)
    if counts.unreadable:
        context: JsonObject = {"examples": [*counts.unreadable_examples[:EXAMPLES]]}
        message = f"{counts.unreadable} entries cannot be looked at; give this process the right to read them"
        yield Uncertainty(severity="notable", message=message, context=context)
    unread = {extension: one.count for extension, one in counts.by_extension.items() if not one.readable}
    missing = sum(unread.values())
    if missing:
        shown = ", ".join(f"{extension} ({count})" for extension, count in list(unread.items())[:EXAMPLES])
        severity: Severity = "notable" if missing >= NOTABLE_SHARE * counts.total_files else "info"
        if missing == counts.total_files:
            severity = "blocking"
        message = f"{missing} of {counts.total_files} files are of types that are not read: {shown}"
        yield Uncertainty(severity=severity, message=message, context={"extensions": {**unread}})


def _of_trials(trials: Sequence[ParserTrial]) -> Iterator[Uncertainty]:
    tried = len({trial.file for trial in trials})
    scanned = sorted({trial.file for trial in trials if trial.scanned})
    if scanned:
        yield _about("notable", f"{len(scanned)} of {tried} files tried {SCANNED}", scanned)
    read = {trial.file for trial in trials if trial.success}
    for code, (_, what) in _FAULTS.items():
        files = sorted({trial.file for trial in trials if _fails_by(trial, code)} - read)
        if files:
            yield _about("notable", f"{len(files)} of {tried} files tried {what}", files)
    empty = sorted({trial.file for trial in trials if _is_empty(trial)} - read)
    if empty:
        yield _about("info", f"{len(empty)} of {tried} files tried hold no text", empty)
    guessed = sorted({trial.file for trial in trials if any("encoding was guessed" in u for u in trial.uncertainties)})
    if guessed:
        yield _about("info", f"the encoding of {len(guessed)} of {tried} files tried was guessed", guessed)


def _of_content(trials: Sequence[ParserTrial], languages: Sequence[LanguageFound]) -> Iterator[Uncertainty]:
    spoken = _spoken(languages)
    if len(spoken) > 1:
        listed = ", ".join(f"{name_of(code)} ({count})" for code, count in spoken.most_common(EXAMPLES))
        message = f"the documents are in several languages, by files: {listed}"
        mixed = sorted(one.file for one in languages if one.mixed)
        yield _about("notable", message, mixed)
    if _has_code_and_prose(trials):
        code = sorted({trial.file for trial in trials if "code" in trial.document_types})
        yield _about("info", "there are both program texts and prose; one way to cut them does not suit both", code)


def _spoken(languages: Sequence[LanguageFound]) -> Counter[str]:
    """How many files have each language as their first, or as their second to a good part."""
    found: Counter[str] = Counter()
    for one in languages:
        found[one.language] += 1
        if one.mixed:
            found.update(code for code, share in one.shares.items() if code != one.language and share >= 0.2)
    return found


def _has_code_and_prose(trials: Sequence[ParserTrial]) -> bool:
    kinds = {kind for trial in trials for kind in trial.document_types}
    return "code" in kinds and len(kinds) > 1


def _fails_by(trial: ParserTrial, code: str) -> bool:
    """Whether a trial failed by this error; a type that nobody reads is counted, not tried."""
    return not trial.success and trial.error_code == code and "files are not read" not in (trial.error or "")


def _is_empty(trial: ParserTrial) -> bool:
    return not trial.success and trial.error_code == "ERR_PARSER_EMPTY" and not trial.scanned


def _about(severity: Severity, message: str, files: Sequence[str]) -> Uncertainty:
    return Uncertainty(severity=severity, message=message, context={"examples": [*files[:EXAMPLES]]} if files else {})
