"""What a program can tell of an everyday answer. Whether it is good is for readers (`sheet.py`)."""

import re
from collections import Counter
from collections.abc import Iterator

from agent.core.models import JsonObject
from agent.sandbox.client import Sandbox
from agent.sandbox.limits import SandboxLimits
from agent.sandbox.probe import find_missing_feature
from agent.text.language import LanguageDetector
from gateway.features.evaluation.scorers import check_text
from tests.bench.everyday_chat.chats import Chat, PythonCheck, Rule

CHECKS = (
    "answered", "no copy of the request", "no stray tags", "no repetition", "language kept", "rule kept",
    "content", "python compiles", "python passes",
)  # fmt: skip
"""The checks in the order of the table."""
RUN_SECONDS = 5.0
NGRAM_WORDS = 5
COPIED_SHARE = 0.7
"""Share of an answer's runs of five words that are in the request, from which on it is a copy."""
REPETITIONS = 3

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_TAG = re.compile(r"</?[A-Za-z][\w-]*(?:\s[^<>\n]*)?/?>|<\|[\w ]+\|>|\[/?INST\]")
"""Tags of any name: an everyday answer has none outside of code. Then the special tokens of chat templates."""
_PROTOCOL = re.compile(r"\A\s*(?:ANSWER\b\s*\n|\{\s*\"(?:kind|tool|steps|name|function)\"\s*:)")
"""What planners and tool calls begin with."""
_SENTENCE_END = re.compile(r"[.!?…]+[\"'»”)*]*(?=\s|\Z)")
_MARKS = " \t\n\"'*_`“”„»«-"

Failures = dict[str, str]
"""By check, what is wrong; "" where it holds. A check that does not apply to a chat is not in it."""


class AnswerChecker:
    """Checks answers. `missing_sandbox` says why functions are only compiled here; "" if they are run too."""

    def __init__(self) -> None:
        self.missing_sandbox = find_missing_feature() or ""
        self._detector = LanguageDetector()
        self._sandbox = Sandbox(SandboxLimits(seconds=RUN_SECONDS), parallel=1)

    async def check(self, chat: Chat, text: str) -> Failures:
        """Applies the checks of a chat to an answer."""
        if not text.strip():
            return dict.fromkeys(self._list_checks(chat), "nothing was answered")
        checks = chat.checks
        failures = {
            "answered": "",
            "no copy of the request": "" if checks.may_repeat else find_copy(text, chat.prompt),
            "no stray tags": find_stray_tags(text),
            "no repetition": find_repetition(text),
        }
        if checks.language:
            language = await self._detector.detect(_strip_code(text))
            failures["language kept"] = "" if language == checks.language else f"in {language!r}"
        if checks.rule is not None:
            failures["rule kept"] = "; ".join(check_rule(checks.rule, text))
        if checks.text is not None:
            failures["content"] = "; ".join(check_text(checks.text, text))
        if checks.python is not None:
            failures |= await self._check_python(checks.python, text)
        return failures

    async def aclose(self) -> None:
        """Ends the sandbox."""
        await self._sandbox.aclose()

    def _list_checks(self, chat: Chat) -> Iterator[str]:
        checks = chat.checks
        applies = {
            "language kept": bool(checks.language),
            "rule kept": checks.rule is not None,
            "content": checks.text is not None,
            "python compiles": checks.python is not None,
            "python passes": checks.python is not None and not self.missing_sandbox,
        }
        return (name for name in CHECKS if applies.get(name, True))

    async def _check_python(self, check: PythonCheck, text: str) -> Failures:
        """Compiles the function of an answer, and calls it in the sandbox: models wrote it."""
        code = find_function(text, check.function)
        fault = "no such function" if code is None else find_syntax_error(code)
        failures = {"python compiles": fault}
        if not self.missing_sandbox:
            failures["python passes"] = fault or await self._call_function(check, str(code))
        return failures

    async def _call_function(self, check: PythonCheck, code: str) -> str:
        inputs: JsonObject = {"calls": [list(arguments) for arguments, _ in check.cases]}
        done = await self._sandbox.run(f"{code}\n\n[{check.function}(*call) for call in inputs['calls']]\n", inputs, {})
        if done.error is not None:
            return done.error.strip().splitlines()[-1][:200]
        expected = [result for _, result in check.cases]
        return "" if done.value == expected else f"returned {done.value!r}, not {expected!r}"[:200]


def find_copy(text: str, prompt: str) -> str:
    """Says that an answer is mostly words of the request; "" if it is not."""
    words, known = _split_words(text), _split_words(prompt)
    if len(words) < NGRAM_WORDS:
        return "the request itself" if words == known else ""
    runs = list(zip(*(words[offset:] for offset in range(NGRAM_WORDS)), strict=False))
    known_runs = set(zip(*(known[offset:] for offset in range(NGRAM_WORDS)), strict=False))
    share = sum(run in known_runs for run in runs) / len(runs)
    return f"{share:.0%} of it is the request" if share >= COPIED_SHARE else ""


def find_stray_tags(text: str) -> str:
    """Names the first tag outside of code, or the form of a planner's reply; "" if there is none."""
    tag = _TAG.search(_strip_code(text))
    if tag is not None:
        return tag[0]
    protocol = _PROTOCOL.search(text)
    return protocol[0].strip() if protocol is not None else ""


def find_repetition(text: str) -> str:
    """Names a line or sentence of four words or more that occurs three times; "" if there is none."""
    prose = _strip_code(text)
    pieces = [" ".join(_split_words(piece)) for line in prose.splitlines() for piece in _SENTENCE_END.split(line)]
    counts = Counter(piece for piece in pieces if piece.count(" ") >= 3)
    return next((f"{count} times {piece!r}"[:120] for piece, count in counts.items() if count >= REPETITIONS), "")


def check_rule(rule: Rule, text: str) -> Iterator[str]:
    """Yields what of the wanted form an answer does not have."""
    plain = text.strip()
    folded = plain.casefold()
    if rule.max_words is not None and (count := len(plain.split())) > rule.max_words:
        yield f"{count} words, not {rule.max_words}"
    if rule.sentences is not None and (count := _count_sentences(plain)) != rule.sentences:
        yield f"{count} sentences, not {rule.sentences}"
    if rule.lines is not None and (count := sum(bool(line.strip()) for line in plain.splitlines())) != rule.lines:
        yield f"{count} lines, not {rule.lines}"
    if rule.starts_with and not folded.lstrip(_MARKS).startswith(rule.starts_with.casefold()):
        yield f"does not begin with {rule.starts_with!r}"
    if rule.ends_with and not folded.rstrip(_MARKS + ".!?").endswith(rule.ends_with.casefold()):
        yield f"does not end with {rule.ends_with!r}"
    if rule.lower_case and plain != plain.lower():
        yield "has capital letters"


def _count_sentences(text: str) -> int:
    """The ends of sentences, and one more for a text that goes on after the last."""
    ends = list(_SENTENCE_END.finditer(text))
    rest = text[ends[-1].end() :] if ends else text
    return len(ends) + bool(rest.strip(_MARKS))


def find_function(text: str, name: str) -> str | None:
    """The code block that defines a function, or the text itself if it is code; None if neither is there."""
    definition = re.compile(rf"^\s*(?:async\s+)?def\s+{re.escape(name)}\s*\(", re.MULTILINE)
    blocks = [*_FENCED.findall(text), *([] if "```" in text else [text])]
    return next((block for block in blocks if definition.search(block)), None)


def find_syntax_error(code: str) -> str:
    """Says why code does not compile; "" if it does."""
    try:
        compile(code, "answer", "exec")
    except (SyntaxError, ValueError) as error:
        return str(error)[:120]
    return ""


def _strip_code(text: str) -> str:
    return _INLINE_CODE.sub(" ", _FENCED.sub(" ", text))


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
