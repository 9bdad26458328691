"""The words in which people wish for another pipeline, and the change each means. `changes.py` reads messages by it."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from agent.builder.adjusting import (
    cut_by,
    in_languages,
    including,
    only,
    resized,
    size_of,
    switched,
    with_knob,
    with_ocr,
    without,
    without_ocr,
)
from agent.builder.advice import is_number
from agent.knowledge.models import FileType
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.templates import list_templates

Wish = Callable[[PipelineDAG], tuple[PipelineDAG, str]]
"""Makes the change, and says it in words. Raises `PipelineInvalidError` for what cannot be."""

_TYPES: Mapping[str, tuple[FileType, ...]] = {
    "pdf": ("pdf",), "docx": ("docx",), "word": ("docx",), "pptx": ("pptx",), "powerpoint": ("pptx",),
    "slide": ("pptx",), "presentation": ("pptx",), "xlsx": ("xlsx",), "excel": ("xlsx",), "csv": ("csv",),
    "spreadsheet": ("xlsx", "csv"), "html": ("html",), "web page": ("html",), "markdown": ("md",), "md": ("md",),
    "txt": ("txt",), "plain text": ("txt",), "text": ("txt",), "eml": ("eml",), "mail": ("eml",), "e-mail": ("eml",),
    "email": ("eml",),
}  # fmt: skip
"""What people call types of files."""
_LANGUAGES: Mapping[str, str] = {
    "english": "eng", "german": "deu", "french": "fra", "spanish": "spa", "italian": "ita", "portuguese": "por",
    "dutch": "nld", "swedish": "swe", "danish": "dan", "norwegian": "nor", "finnish": "fin", "polish": "pol",
    "czech": "ces", "hungarian": "hun", "romanian": "ron", "greek": "ell", "turkish": "tur", "russian": "rus",
    "ukrainian": "ukr", "arabic": "ara", "hebrew": "heb", "japanese": "jpn", "korean": "kor", "chinese": "chi_sim",
}  # fmt: skip
"""Languages in tesseract's words."""
_CHUNKERS: Mapping[str, str] = {
    "sentence": "sentence", "heading": "structure", "paragraph": "structure", "section": "structure",
    "structure": "structure", "fixed": "fixed", "even": "fixed", "equal": "fixed",
}  # fmt: skip


def _any(words: Mapping[str, object] | Sequence[str]) -> str:
    """One of these words, the longest first."""
    return "(?:" + "|".join(re.escape(one) for one in sorted(words, key=len, reverse=True)) + ")"


_THE = r"(?:(?:the|all|these|those|my|our|any|every|each|all the|all of the) )?"
_CHUNK = r"(?:(?:chunk|passage|piece)(?:s|es)?(?: sizes?)?)"
_MAKE = r"(?:(?:make|keep|cut|have|use|take|try|prefer|give me|create|get|go with|go for|switch to|set|choose|pick) )?"
_BIT = r"(?:(?:a bit|a little|a lot|somewhat|slightly|much|even|far|way) )?"
_LESS, _MORE = r"(?:smaller|shorter|finer|tinier)", r"(?:bigger|larger|longer|coarser)"
_NUMBER = r"(?P<number>\d{1,3}(?:,\d{3})+|\d{1,9})"
_CHARS = r"(?: (?:characters?|chars?|letters?))"
_FILES = r"(?: (?:files?|documents?|ones?|pages?|attachments?))?"
_TYPE = rf"[*]?[.]?{_any(_TYPES)}s?{_FILES}"
_LISTED = rf"(?P<types>{_TYPE}(?:(?:, (?:and |or )?| (?:and|or|nor) ){_THE}{_TYPE})*)"
_CODES = r"[a-z]{3}(?:_[a-z]{3})?"
_TONGUE = rf"(?:{_any(_LANGUAGES)}|{_CODES}(?:\+{_CODES})*)"
_TONGUES = rf"(?P<languages>{_any(_LANGUAGES)}(?:(?:, (?:and )?| (?:and|or) ){_any(_LANGUAGES)})*)"
_OVER = (
    rf"(?:them|it|everything|every page|all pages|{_THE}(?:scans?|scanned (?:pages|files)|pdfs?|pages|files|documents))"
)
_DO = r"(?:index|read|include|take|use|import|ingest)"


def _knobs() -> dict[str, str]:
    """The numbers that templates let one set, by the words for them."""
    names = {one.name for made in list_templates() for one in made.parameters if is_number(one.value_schema)}
    words = {name.replace("_", " "): name for name in sorted(names)}
    return {**words, "passage size": "chunk_size", "timeout": "timeout_s", "size of the chunks": "chunk_size"}


def _template(found: re.Match[str]) -> Wish:
    name = (found["before"] or found["after"]).lower()

    def make(pipeline: PipelineDAG) -> tuple[PipelineDAG, str]:
        return (switched(pipeline, name) if name != pipeline.template else pipeline), f"the template {name}"

    return make


def _knob(found: re.Match[str]) -> Wish:
    name = _knobs()[" ".join(re.split(r"[ _-]", found["knob"].lower()))]
    return lambda pipeline: (with_knob(pipeline, name, _number(found)), f"{name.replace('_', ' ')} {_number(found)}")


def _size(found: re.Match[str]) -> Wish:
    return lambda pipeline: (with_knob(pipeline, "chunk_size", _number(found)), f"chunk size {_number(found)}")


def _scaled(factor: float, words: str) -> Callable[[re.Match[str]], Wish]:
    def wish(_: re.Match[str]) -> Wish:
        def make(pipeline: PipelineDAG) -> tuple[PipelineDAG, str]:
            made, size = resized(pipeline, factor)
            return made, f"{words} chunks: chunk size {size} instead of {size_of(pipeline)}"

        return make

    return wish


def _overlap(found: re.Match[str]) -> Wish:
    return lambda pipeline: (with_knob(pipeline, "overlap", _number(found)), f"overlap {_number(found)}")


def _overlap_by(factor: float) -> Callable[[re.Match[str]], Wish]:
    def wish(_: re.Match[str]) -> Wish:
        def make(pipeline: PipelineDAG) -> tuple[PipelineDAG, str]:
            wanted = round(size_of(pipeline, "overlap") * factor)
            return with_knob(pipeline, "overlap", wanted), f"overlap {wanted}"

        return make

    return wish


def _chunker(found: re.Match[str]) -> Wish:
    plugin = next(name for word, name in _CHUNKERS.items() if word in found["chunker"].lower())
    return lambda pipeline: (cut_by(pipeline, plugin), f"the chunker {plugin}")


def _left_out(found: re.Match[str]) -> Wish:
    return lambda pipeline: (without(pipeline, _types(found)), f"no {', '.join(_types(found))} files")


def _only(found: re.Match[str]) -> Wish:
    return lambda pipeline: (only(pipeline, _types(found)), f"only {', '.join(_types(found))} files")


def _too(found: re.Match[str]) -> Wish:
    return lambda pipeline: (including(pipeline, _types(found)), f"{', '.join(_types(found))} files too")


def _ocr(_: re.Match[str]) -> Wish:
    return lambda pipeline: (with_ocr(pipeline), "every page of PDFs by OCR")


def _no_ocr(_: re.Match[str]) -> Wish:
    return lambda pipeline: (without_ocr(pipeline), "OCR only where a page holds no text")


def _tongues(found: re.Match[str]) -> Wish:
    said = re.findall(_any(_LANGUAGES), found["languages"].lower())
    codes = "+".join(dict.fromkeys(_LANGUAGES[one] for one in said)) or found["languages"]
    return lambda pipeline: (in_languages(pipeline, codes), f"OCR in {codes}")


_USE = r"(?:(?:use|take|try|prefer|choose|pick|go with|switch to|change to|apply) )?"
Reading = Callable[[re.Match[str]], Wish]


@cache
def grammar() -> Sequence[tuple[re.Pattern[str], Reading]]:
    """Clauses that are wishes, and what each means: the first that fits a whole clause is what is meant. Made when
    somebody first talks: templates and patterns take longer than any import, and most starts need none of them."""
    return [(re.compile(rf"{pattern}(?!\w)", re.IGNORECASE), wish) for pattern, wish in _clauses()]


def _clauses() -> Sequence[tuple[str, Reading]]:
    names = _any([one.name for one in list_templates()])
    return (
        (
            rf"{_USE}(?:the )?(?:template [\"'`]?(?P<before>{names})[\"'`]?|"
            rf"[\"'`]?(?P<after>{names})[\"'`]? template)",
            _template,
        ),
        (rf"{_MAKE}{_THE}{_CHUNK} (?:of|with|to|to be|at|have) {_NUMBER}{_CHARS}", _size),
        (
            rf"(?:(?:increase|raise|enlarge|decrease|reduce|lower|shrink|set|change|cut) ){_THE}{_CHUNK} "
            rf"(?:down |up )?to {_NUMBER}{_CHARS}?",
            _size,
        ),
        (rf"{_NUMBER}{_CHARS} (?:per|a|each|for each|in each) (?:chunk|passage|piece)", _size),
        (
            r"(?:(?:set|use|make|change|have|a|an) )*(?:the )?(?P<knob>" + "|".join(
                name.replace(" ", "[ _-]") for name in sorted(_knobs(), key=len, reverse=True)
            ) + rf")(?: (?:to|of|is|should be|at)|:| ?=)? {_NUMBER}(?:{_CHARS}| ?s| seconds| bytes)?",
            _knob,
        ),
        (rf"{_MAKE}{_THE}{_CHUNK} {_BIT}{_LESS}", _scaled(0.5, "smaller")),
        (rf"{_MAKE}{_BIT}{_LESS} {_CHUNK}", _scaled(0.5, "smaller")),
        (rf"{_THE}{_CHUNK} (?:are|is|look) (?:still )?{_BIT}too (?:big|large|long)", _scaled(0.5, "smaller")),
        (rf"(?:decrease|reduce|lower|shrink|halve) {_THE}{_CHUNK}", _scaled(0.5, "smaller")),
        (rf"{_MAKE}{_THE}{_CHUNK} {_BIT}{_MORE}", _scaled(2, "bigger")),
        (rf"{_MAKE}{_BIT}{_MORE} {_CHUNK}", _scaled(2, "bigger")),
        (rf"{_THE}{_CHUNK} (?:are|is|look) (?:still )?{_BIT}too (?:small|short)", _scaled(2, "bigger")),
        (rf"(?:increase|raise|enlarge|double) {_THE}{_CHUNK}", _scaled(2, "bigger")),
        (rf"{_MAKE}{_NUMBER}{_CHARS} (?:of )?overlap", _overlap),
        (rf"(?:{_MAKE}(?:no|zero)|without(?: any)?|(?:remove|drop) the) overlap", _overlap_by(0)),
        (rf"{_MAKE}{_BIT}(?:more|bigger|larger) overlap", _overlap_by(2)),
        (rf"{_MAKE}{_BIT}(?:less|smaller) overlap", _overlap_by(0.5)),
        (
            r"(?:use|try|take|prefer|choose|switch to|go with|cut by|chunk by) (?:the )?(?:whole |complete )?"
            r"(?P<chunker>sentences?(?: chunk(?:er|ing))?|(?:structure|fixed)(?: chunk(?:er|ing))|headings|paragraphs|"
            r"(?:even|equal|fixed)[ -](?:sized? )?(?:windows|chunks|pieces))",
            _chunker,
        ),
        (
            rf"(?:split|cut|chunk|break|divide)(?: (?:it|them|{_THE}(?:text|texts|documents|files)))?(?: up)? "
            r"(?:by|at|into|on|along|between)(?: the)?(?: whole)? "
            r"(?P<chunker>sentences?|headings?|paragraphs?|sections?|structure|(?:even|equal|fixed)(?:[ -]sized?)? "
            r"(?:windows|pieces|chunks))",
            _chunker,
        ),
        (rf"{_THE}{_LISTED} only", _only),
        (rf"(?:{_DO} )?(?:only|just|nothing but) (?:{_DO} )?{_THE}{_LISTED}", _only),
        (rf"leave {_THE}{_LISTED} out", _left_out),
        (
            rf"(?:skip|ignore|exclude|omit|drop|leave out|leave off|(?:do not|don't|don\u2019t|never) {_DO}|without|no|"
            rf"except(?: for)?) {_THE}{_LISTED}",
            _left_out,
        ),
        (rf"(?:also |again )(?:{_DO}|add) {_THE}{_LISTED}", _too),
        (rf"(?:{_DO}|add) {_THE}{_LISTED} (?:too|as well|again|also)", _too),
        (
            r"(?:ocr|the ocr|scans|the scans|the scanned pages|the pdfs)(?: languages?)?"
            rf"(?: (?:are|is))?(?: written)?(?: in|:| =)? {_TONGUES}",
            _tongues,
        ),
        (rf"(?:the )?ocr[ _]languages?(?: (?:is|are|to)|:| ?=)? (?P<languages>{_TONGUE})", _tongues),
        (r"(?:no|without|disable|turn off|stop|skip|do not use|don't use|don\u2019t use) (?:the )?ocr", _no_ocr),
        (rf"read {_OVER} (?:by|with|using) ocr", _ocr),
        (
            rf"(?:(?:use|try|run|apply|enable|turn on|do|force|switch on) )?ocr(?: (?:for|on|over|to))?(?: {_OVER})?",
            _ocr,
        ),
    )  # fmt: skip


def _types(found: re.Match[str]) -> tuple[FileType, ...]:
    said = re.findall(_any(_TYPES), found["types"].lower())
    return tuple(dict.fromkeys(one for word in said for one in _TYPES[word]))


def _number(found: re.Match[str]) -> int:
    return int(found["number"].replace(",", ""))
