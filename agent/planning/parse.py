"""Parses the plan in a model's reply, or rejects the reply. It never returns a plan that the model did not write.

The order: remove thinking, strict JSON, fenced block, last object with `steps`, bare array, then a repair library with
a check for losses. Truncated replies are not repaired: in a fuzz test of damaged plans, repair returned a different
plan without notice in one case of nine.
"""

import json
import re
from collections.abc import Iterator

from agent.core.errors import PlanInvalidError
from agent.core.fenced_json import iterate_json_blocks
from agent.core.models import JsonObject
from agent.llm.thoughts import OPENING, THOUGHT, split_text

MAX_REPLY_CHARS = 200_000
UNENDED_THINKING = "the reply ended before its thinking did"
LONGEST_WORD = 24
"""Characters of a reply of one word, and of the marks around it."""
_MARKS = ".,:;!?\"'`*()[] \n"
_LONG_NUMBER = re.compile(r"\d{400,}")
_PROSE_BRACES = re.compile(r"\{[^{}\[\]\"':]*\}")
"""Braces in a sentence ("replace {name} by yours"), which belong to no plan."""
_TOKEN = re.compile(r"[\w$.+-]+")
_ESCAPE = re.compile(r"""\\["'\\/bfnrtu]""")
_LOST_BACKSLASH = re.compile(r"[\x08\x0c]")
"""The control characters that JSON makes of an unescaped backslash in a TeX command or a Windows path."""
_JSON_IN_VALUE = re.compile(r"[{\[]\s*[\"'][\w$ -]+[\"']\s*:|[\"']\s*[:,]\s*[{\[]")


def parse_reply(text: str, finish_reason: str = "stop", whole: object = None) -> JsonObject:
    """The plan object of a reply, with its `steps` list. Raises `PlanInvalidError` with the problem.

    `whole` is what `parse_strict` returns for the text, if that is known."""
    if finish_reason == "length":
        raise PlanInvalidError(["the reply was cut off before its end; answer with a shorter plan"])
    if len(text) > MAX_REPLY_CHARS:
        raise PlanInvalidError([f"the reply is longer than {MAX_REPLY_CHARS:,} characters"])
    body = text.strip().lstrip("\ufeff").strip()
    whole = parse_strict(body) if whole is None else whole
    if whole is not None:  # such a tag belongs to a value
        return _extract_plan(whole)
    body = strip_thinking(body)
    if not body:
        raise PlanInvalidError(["the reply is empty"])
    for candidate in _iterate_candidates(body):
        return _extract_plan(candidate)
    return _extract_plan(_repair(body))


def read_damaged_plan(text: str) -> JsonObject:
    """What can be read of a refused reply: enough to name its calls, never to make them. {} without steps."""
    try:
        body = strip_thinking(text[:MAX_REPLY_CHARS].strip())
    except PlanInvalidError:
        return {}
    start = min((index for index in (body.find("{"), body.find("[")) if index != -1), default=-1)
    if start == -1:
        return {}
    import json_repair  # noqa: PLC0415 - few replies are damaged

    try:
        value = json_repair.loads(body[start:])
        return _extract_plan(value)
    except (ValueError, RecursionError, PlanInvalidError):
        return {}


def find_object(body: str, whole: object) -> JsonObject | None:
    """The last JSON object with `kind` or `steps`, preferably one with steps; None if there is none.

    Accepts strict JSON, which `parse_strict` has read as `whole`, a fenced block, or an object between prose."""
    candidates = [whole]
    if whole is None:
        candidates = [*_iterate_fenced(body), *_iterate_objects(body)]
    named = [value for value in candidates if isinstance(value, dict) and ("kind" in value or "steps" in value)]
    return next((value for value in reversed(named) if value.get("steps")), named[-1] if named else None)


def _iterate_candidates(body: str) -> Iterator[object]:
    """Yields the possible plans of a reply, strictest reading first."""
    whole = parse_strict(body)
    if whole is not None:
        yield whole
        return
    fences = list(iterate_json_blocks(body))
    plans = [fence for fence in fences if _looks_like_plan(parse_strict(fence[1].strip()))]
    if plans:
        if any("{" in fence[1] for fence in fences[fences.index(plans[-1]) + 1 :]):
            raise _build_draft_error()
        list(_iterate_objects(body[fences[-1].end() :], found=True))  # raises if a later plan is truncated
        yield parse_strict(plans[-1][1].strip())
        return
    objects = [value for value in _iterate_objects(body) if isinstance(value, dict) and "steps" in value]
    if objects:
        yield objects[-1]
        return
    start, end = body.find("["), body.rfind("]")
    array = parse_strict(body[start : end + 1]) if 0 <= start < end else None
    if array is not None and _looks_like_plan(array) and "{" not in body[:start] and "}" not in body[end:]:
        yield array


def _extract_plan(value: object) -> JsonObject:
    """The object that holds the steps. Raises `PlanInvalidError` if there is none."""
    if isinstance(value, list):
        value = {"steps": value}
    if not isinstance(value, dict):
        raise PlanInvalidError(["the reply is not a JSON object with a list of steps"])
    for wrapper in ("plan", "output", "response"):
        inner = value.get(wrapper)
        if "steps" not in value and isinstance(inner, dict) and "steps" in inner:
            value = inner
    if "properties" in value and "steps" not in value:
        raise PlanInvalidError(["the reply repeats the schema; fill it in instead"])
    _check_steps(value.get("steps"))
    return value


def _check_steps(steps: object) -> None:
    """Raises `PlanInvalidError` unless `steps` is a list of objects without control characters."""
    if isinstance(steps, dict) and "items" in steps:
        raise PlanInvalidError(["the reply repeats the schema; fill it in instead"])
    if not isinstance(steps, list):
        raise PlanInvalidError(['the reply has no list "steps"'])
    if not steps:
        raise PlanInvalidError(["the plan has no steps; it needs at least one"])
    if not all(isinstance(step, dict) for step in steps):
        raise PlanInvalidError(["every step must be an object"])
    if _LOST_BACKSLASH.search("".join(_iterate_strings(steps))):
        raise PlanInvalidError(["a backslash in a value is not escaped; write it twice"])


def parse_strict(text: str) -> object:
    """The value of strict JSON, or None. Rejects duplicate keys, because one value would be lost."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is written twice")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_reject_duplicate_keys)


def _iterate_objects(body: str, *, found: bool = False) -> Iterator[object]:
    """Yields every outermost object in the text that is strict JSON; none if the first bracket starts a broken object,
    because its inner objects belong to another plan.

    Raises `PlanInvalidError` if a broken object follows a good one: the good one is then a draft of the broken one."""
    position = body.find("{")
    while position != -1:
        prose = _PROSE_BRACES.match(body, position)
        try:
            value, end = _DECODER.raw_decode(body, position)
        except (ValueError, RecursionError):
            if prose is None:
                if found:
                    raise _build_draft_error() from None
                return
            end = prose.end()
        else:
            found = True
            yield value
        position = body.find("{", end)


def _build_draft_error() -> PlanInvalidError:
    return PlanInvalidError(["the reply holds a plan and then a broken one; answer with one complete plan"])


def strip_thinking(text: str) -> str:
    """The reply without the thinking blocks before its first bracket. Later tags may belong to a value.

    Raises `PlanInvalidError` for a block without an end."""
    split = split_text(text)
    if split.is_open:
        raise PlanInvalidError([UNENDED_THINKING])
    text = split.text
    while (opened := OPENING.search(text)) is not None:
        bracket = re.search(r"[{\[]", text)
        if bracket is not None and bracket.start() < opened.start():
            break
        thought = THOUGHT.match(text, opened.start())
        if thought is None:
            raise PlanInvalidError([UNENDED_THINKING])
        text = (text[: opened.start()] + text[thought.end() :]).strip()
    return text


def read_word(text: str) -> str:
    """The one word of a reply, as `PlannerModel.ask_word` has it."""
    try:
        word = strip_thinking(text).strip().strip(_MARKS).lower()
    except PlanInvalidError:
        return ""
    return word if word.isalpha() else ""


def is_longer_than_word(text: str) -> bool:
    """Whether the beginning of a reply is more than one word already."""
    try:
        return len(strip_thinking(text).strip()) > LONGEST_WORD
    except PlanInvalidError:  # it still thinks
        return False


def read_last_object(text: str, name: str) -> JsonObject:
    """The last JSON object with this property in a reply: the whole of it, in a code block or between words; {} if
    there is none. Endpoints that ignore a schema send such replies."""
    try:
        body = strip_thinking(text.strip().lstrip("\ufeff"))
        whole = parse_strict(body)
        candidates = [whole] if whole is not None else [*_iterate_fenced(body), *_iterate_objects(body)]
    except PlanInvalidError:
        return {}
    named = [value for value in candidates if isinstance(value, dict) and name in value]
    return named[-1] if named else {}


def _iterate_fenced(body: str) -> Iterator[object]:
    yield from (parse_strict(fence[1].strip()) for fence in iterate_json_blocks(body))


def read_first_object(text: str) -> object:
    """The first JSON object of a reply behind its thinking, whatever follows. Raises `PlanInvalidError`."""
    body = strip_thinking(text.strip())
    try:
        value, _ = json.JSONDecoder().raw_decode(body, max(body.find("{"), 0))
    except (ValueError, RecursionError) as error:
        raise PlanInvalidError(["the reply holds no JSON object"]) from error
    return value


def _looks_like_plan(value: object) -> bool:
    if isinstance(value, dict):
        return "steps" in value or "plan" in value
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "tool" in item for item in value)


def _repair(body: str) -> object:
    """The reply as the repair library reads it. Raises `PlanInvalidError` if that loses or adds anything."""
    fences = [block[1] for block in iterate_json_blocks(body)]
    text = fences[-1] if fences else body
    start = min((index for index in (text.find("{"), text.find("[")) if index != -1), default=-1)
    if start == -1:
        raise PlanInvalidError(["the reply holds no JSON; answer with the JSON plan only"])
    end = max(text.rfind("}"), text.rfind("]"))
    part = text[start : end + 1]
    if end < start or not has_balanced_brackets(part):
        raise PlanInvalidError(["the brackets of the reply do not balance; it was cut off or damaged"])
    if "\\" in _ESCAPE.sub("", part):
        raise PlanInvalidError(["a backslash in a value is not escaped; write it twice"])
    if _LONG_NUMBER.search(part):
        raise PlanInvalidError(["a number of the reply has hundreds of digits"])
    import json_repair  # noqa: PLC0415 - few replies are damaged

    try:
        value = json_repair.loads(part)
    except (ValueError, RecursionError) as error:
        raise PlanInvalidError([f"the reply is not JSON: {error}"]) from error
    problem = _describe_loss(part, value)
    if problem is not None:
        raise PlanInvalidError([problem])
    return value


def has_balanced_brackets(text: str) -> bool:
    """Whether the brackets and quotes of JSON-like text match. Honours both kinds of quotes and escapes."""
    stack: list[str] = []
    quote = ""
    escaped = False
    for char in text:
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char == '"':
            quote = char
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]" and (not stack or stack.pop() != char):
            return False
    return not stack and not quote


def _describe_loss(part: str, value: object) -> str | None:
    """Describes how the repaired value differs from the text, or None if it has the same words in the same order."""
    before = _TOKEN.findall(_remove_escapes(part))
    after: list[str] = []
    _collect_words(value, after)
    if [_normalise_literal(word) for word in before] != [_normalise_literal(word) for word in after]:
        return "the reply is not valid JSON and could not be repaired without changing it"
    if any(_JSON_IN_VALUE.search(text) for text in _iterate_strings(value)):
        return "a value of the reply holds JSON of its own; quote or escape it properly"
    return None


def _remove_escapes(text: str) -> str:
    return (
        re.sub(r"//[^\n]*|/\*.*?(?:\*/|\Z)", "", text, flags=re.DOTALL)
        .replace("\\n", " ")
        .replace("\\t", " ")
        .replace('\\"', '"')
    )


def _collect_words(value: object, words: list[str]) -> None:
    """Appends the words of a value to `words`, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            words += _TOKEN.findall(str(key))
            _collect_words(item, words)
    elif isinstance(value, list):
        for item in value:
            _collect_words(item, words)
    elif value is None or isinstance(value, bool):
        words.append(json.dumps(value))
    else:
        words += _TOKEN.findall(str(value))


def _iterate_strings(value: object) -> Iterator[str]:
    """Yields the texts in a value, in any order."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _normalise_literal(word: str) -> str:
    """Converts the literals of Python to those of JSON."""
    return {"True": "true", "False": "false", "None": "null"}.get(word, word)
