"""Finds the uncertainties of a source from counts and trials: scans, mixed languages, code and prose,
unreadable files."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from agent.core.models import JsonObject
from agent.core.subagent_result import Severity, Uncertainty
from agent.text.language import get_language_name
from gateway.features.documents.engine.search.models import COMPLETE_SHARE, USABLE_SHARE
from gateway.features.pipeline_builder.engine.subagents.reading_tools import LanguageResult, ParserTrial
from gateway.features.pipeline_builder.engine.subagents.source_tools import EnumerateOutput

EXAMPLES = 5
SCANNED = "hold scanned pages; they have to be read by OCR"
"""How an uncertainty about scans ends; choosing OCR resolves it."""
_FAULTS: Mapping[str, tuple[str, str]] = {
    "ERR_PARSER_ENCRYPTED": ("encrypted_files", "open with a password only"),
    "ERR_PARSER_CORRUPT": ("corrupted_files", "are damaged or unsafe to unpack"),
    "ERR_PARSER_UNSUPPORTED": ("mislabelled_files", "are not what their names say"),
    "ERR_TIMEOUT": ("slow_files", "took too long to read"),
    "ERR_TOO_LARGE": ("large_files", "are larger than a parser opens"),
}
"""A quality issue by the error that shows it, and what is wrong with the files."""


def find_quality_issues(trials: Sequence[ParserTrial], languages: Sequence[LanguageResult]) -> list[str]:
    """The names of quality issues for `quality_issues`."""
    names = [name for code, (name, _) in _FAULTS.items() if _list_failed_files(trials, code)]
    if any(trial.scanned for trial in trials):
        names.insert(0, "scanned_pdfs")
    if _list_empty_files(trials):
        names.append("empty_files")
    if len(_count_languages(languages)) > 1:
        names.append("mixed_languages")
    if _has_code_and_prose(trials):
        names.append("code_and_prose")
    return names


def find_uncertainties(
    counts: EnumerateOutput | None, trials: Sequence[ParserTrial], languages: Sequence[LanguageResult]
) -> tuple[Uncertainty, ...]:
    """The uncertainties that a person should know before a pipeline is built, worst first."""
    uncertainties = [*_from_counts(counts), *_from_trials(trials), *_from_content(trials, languages)]
    order: tuple[Severity, ...] = ("blocking", "notable", "info")
    return tuple(sorted(uncertainties, key=lambda one: order.index(one.severity)))


def _from_counts(counts: EnumerateOutput | None) -> Iterator[Uncertainty]:
    if counts is None:
        yield Uncertainty(severity="notable", message="the list of the source's files is incomplete")
        return
    if not counts.total_files:
        yield Uncertainty(severity="blocking", message="this source has no files")
    if counts.note:
        yield Uncertainty(severity="notable", message=counts.note)
    if counts.unreadable:
        context: JsonObject = {"examples": [*counts.unreadable_examples[:EXAMPLES]]}
        message = f"{counts.unreadable} entries cannot be accessed; give this process permission to read them"
        yield Uncertainty(severity="notable", message=message, context=context)
    unread = {extension: one.count for extension, one in counts.by_extension.items() if not one.readable}
    missing = sum(unread.values())
    if missing:
        extension_list = ", ".join(f"{extension} ({count})" for extension, count in list(unread.items())[:EXAMPLES])
        message = f"{missing} of {counts.total_files} files are of kinds that no parser reads: {extension_list}"
        severity: Severity = "blocking" if missing == counts.total_files else "info"
        yield Uncertainty(severity=severity, message=message, context={"extensions": {**unread}})


def _from_trials(trials: Sequence[ParserTrial]) -> Iterator[Uncertainty]:
    tried = len({trial.file for trial in trials})
    scanned = sorted({trial.file for trial in trials if trial.scanned})
    if scanned:
        yield _with_examples("notable", f"{len(scanned)} of {tried} files tried {SCANNED}", scanned)
    for code, (_, what) in _FAULTS.items():
        files = _list_failed_files(trials, code)
        if files:
            yield _with_examples("notable", f"{len(files)} of {tried} files tried {what}", files)
    empty = _list_empty_files(trials)
    if empty:
        yield _with_examples("info", f"{len(empty)} of {tried} files tried hold no text", empty)
    yield from _from_coverage(trials)
    guessed = sorted({trial.file for trial in trials if any("encoding was guessed" in u for u in trial.uncertainties)})
    if guessed:
        yield _with_examples("info", f"the encoding of {len(guessed)} of {tried} files tried was guessed", guessed)


def _from_coverage(trials: Sequence[ParserTrial]) -> Iterator[Uncertainty]:
    """Yields what no parser read as a whole: what is less than half read blocks."""
    best: dict[str, float] = {}
    for trial in trials:
        if trial.coverage is not None:
            best[trial.file] = max(best.get(trial.file, 0.0), trial.coverage)
    unusable = sorted(file for file, share in best.items() if share < USABLE_SHARE)
    if unusable:
        message = f"less than half of the text is read in {len(unusable)} of {len(best)} files tried"
        yield _with_examples("blocking", message, unusable)
    incomplete = sorted(file for file, share in best.items() if USABLE_SHARE <= share < COMPLETE_SHARE)
    if incomplete:
        message = f"{len(incomplete)} of {len(best)} files tried are not read completely"
        yield _with_examples("notable", message, incomplete, names_all=False)


def _from_content(trials: Sequence[ParserTrial], languages: Sequence[LanguageResult]) -> Iterator[Uncertainty]:
    spoken = _count_languages(languages)
    if len(spoken) > 1:
        listed = ", ".join(f"{get_language_name(code)} ({count})" for code, count in spoken.most_common(EXAMPLES))
        message = f"the documents are in several languages, by files: {listed}"
        mixed = sorted(one.file for one in languages if one.mixed)
        yield _with_examples("notable", message, mixed, names_all=False)
    if _has_code_and_prose(trials):
        code = sorted({trial.file for trial in trials if "code" in trial.document_types})
        message = "there are both source code and prose; one way of splitting does not suit both"
        yield _with_examples("info", message, code)


def _count_languages(languages: Sequence[LanguageResult]) -> Counter[str]:
    """Counts the files with each language as their first, or as a substantial second one."""
    counts: Counter[str] = Counter()
    for one in languages:
        counts[one.language] += 1
        if one.mixed:
            counts.update(code for code, share in one.shares.items() if code != one.language and share >= 0.2)
    return counts


def _has_code_and_prose(trials: Sequence[ParserTrial]) -> bool:
    kinds = {kind for trial in trials for kind in trial.document_types}
    return "code" in kinds and bool(kinds - {"code"} - _SPLIT_BY_ROWS)


_SPLIT_BY_ROWS = frozenset({"table", "spreadsheet"})
"""Document types that are split by their rows, whatever stands beside them."""


def _list_failed_files(trials: Sequence[ParserTrial], code: str) -> list[str]:
    """The files that failed with this error and that no other parser read. Files of a type without a parser are
    counted, not tried.
    """
    return _list_unread_files(
        trials, lambda trial: trial.error_code == code and "files are not read" not in (trial.error or "")
    )


def _list_empty_files(trials: Sequence[ParserTrial]) -> list[str]:
    return _list_unread_files(trials, lambda trial: trial.error_code == "ERR_PARSER_EMPTY" and not trial.scanned)


def _list_unread_files(trials: Sequence[ParserTrial], has_failed: Callable[[ParserTrial], bool]) -> list[str]:
    read = {trial.file for trial in trials if trial.success}
    return sorted({trial.file for trial in trials if not trial.success and has_failed(trial)} - read)


def _with_examples(severity: Severity, message: str, files: Sequence[str], *, names_all: bool = True) -> Uncertainty:
    """An uncertainty about these files. `total` says that all are named: excluding them resolves it."""
    context: JsonObject = {"examples": [*files]} if files else {}
    if files and names_all:
        context["total"] = len(files)
    return Uncertainty(severity=severity, message=message, context=context)
