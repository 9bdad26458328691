"""Recognises kinds of text by form: code, prose, academic, legal, mail. Pure functions."""

import re
from collections.abc import Sequence

from gateway.features.documents.engine.search.models import FileType

CODE = {
    ".c": "C", ".cc": "C++", ".cpp": "C++", ".cs": "C#", ".css": "CSS", ".go": "Go", ".h": "C", ".hpp": "C++",
    ".java": "Java", ".js": "JavaScript", ".jsx": "JavaScript", ".kt": "Kotlin", ".lua": "Lua", ".m": "Objective-C",
    ".php": "PHP", ".pl": "Perl", ".ps1": "PowerShell", ".py": "Python", ".r": "R", ".rb": "Ruby", ".rs": "Rust",
    ".scala": "Scala", ".sh": "shell", ".sql": "SQL", ".swift": "Swift", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".vue": "Vue",
}  # fmt: skip
"""Extensions of source code and its language. Such files are read as plain text."""

MOSTLY_CODE = 0.5
"""Share of lines from which a text counts as code. Prose with a few examples stays below a third."""
_READ_CHARS = 20_000
_CODE_LINE = re.compile(
    r"^\s*(?:(?:def|class|import|from|return|if|elif|else|for|while|try|except|with|async|await|func|fn|let|const|var|"
    r"public|private|protected|static|void|int|struct|enum|package|use|impl|pub|end|begin|SELECT|INSERT|UPDATE|CREATE)\b"
    r".*(?:[:;{}()=]|->)\s*$|[})\]]+[;,]?\s*$|#include\b|//|/\*|\*/|@\w+(?:\(|\s*$)|[\w.\[\]]+\s*[-+*/|&]?=\s*\S|"
    r"[\w.]+\([^()]{0,200}\)\s*;?\s*$|.{0,200}[;{]\s*$)"
)
_FIELD = re.compile(r"^(?:From|To|Subject|Date|Cc|Sent): ", re.MULTILINE)
_LOG_LINE = re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|^\w{3} [ \d]\d \d\d:\d\d:\d\d ", re.MULTILINE)
_SIGNS: tuple[tuple[str, int, re.Pattern[str]], ...] = (
    (
        "academic",
        3,
        re.compile(
            r"\babstract\b|\breferences\b|\bet al\.|\bdoi:|\barxiv\b|\bkeywords\b|\bintroduction\b|\bconclusions?\b|"
            r"\brelated work\b|\bmethodology\b|\bhypothes[ie]s\b|\[\d{1,3}\](?:,|\.| )",
            re.IGNORECASE,
        ),
    ),
    (
        "legal",
        3,
        re.compile(
            r"\bhereby\b|\bhereinafter\b|\bthe parties\b|\bgoverning law\b|\bliabilit(?:y|ies)\b|\bindemnif\w+|"
            r"\bclause\b|\bagreement\b|\bshall\b|§|\bVertrag\b|\bavtal\b",
            re.IGNORECASE,
        ),
    ),
    (
        "documentation",
        3,
        re.compile(
            r"\binstall(?:ation|ing)?\b|\busage\b|\bconfigur(?:e|ation)\b|\bgetting started\b|\bAPI\b|\bparameters?\b|"
            r"\bexamples?\b|^\s*\$ |```|\btroubleshooting\b",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    (
        "financial",
        3,
        re.compile(
            r"\brevenue\b|\bbalance sheet\b|\bcash flow\b|\bfiscal\b|\bEBITDA\b|\binvoice\b|"
            r"\bnet income\b|\bshareholders?\b",
            re.IGNORECASE,
        ),
    ),
)
"""A kind of text, how many different signs it needs, and the signs."""
_OF_TYPE: dict[FileType, str] = {"pptx": "presentation", "xlsx": "spreadsheet", "csv": "table", "eml": "mail"}


def compute_code_share(text: str) -> float:
    """The share of non-blank lines that look like code, from 0 to 1."""
    lines = [line[:400] for line in text[:_READ_CHARS].splitlines() if line.strip()]
    return sum(bool(_CODE_LINE.match(line)) for line in lines) / len(lines) if lines else 0.0


def detect_document_types(samples: Sequence[str], file_type: FileType | None, extension: str) -> list[str]:
    """The recognised kinds; `prose` if there is text of no other kind, nothing without text."""
    if extension in CODE:
        return ["code"]
    if file_type in _OF_TYPE:
        return [_OF_TYPE[file_type]]
    text = "\n".join(samples)[:_READ_CHARS]
    if not text.strip():
        return []
    if compute_code_share(text) >= MOSTLY_CODE:
        return ["code"]
    if len(_LOG_LINE.findall(text)) >= 5:
        return ["log"]
    if len(_FIELD.findall(text[:1_000])) >= 3:
        return ["mail"]
    names = [name for name, least, signs in _SIGNS if len({match.lower() for match in signs.findall(text)}) >= least]
    return names or ["prose"]
