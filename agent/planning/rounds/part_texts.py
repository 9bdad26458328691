"""The parts of a request as a small model writes them: words, and sometimes code.

A model that was trained on programs writes `query_table(`, `limit=1` or a file's name where the steps are asked for.
Each open part costs a question to the model, so what is not a step is left out, and a step that is written as a call is
done when that call was made.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence

from agent.core.json_walk import iter_leaves
from agent.planning.request import RoundCall
from agent.planning.rounds.decision_schema import PART_CHARS
from agent.text.terms import extract_terms, is_filler, map_query_terms
from agent.tools.catalogue import split_name

_CODE = re.compile(
    r"[\w.]+(?:\(|\s*=).*|(?=\w+_\w)\w++\s*+\(.*|[a-z_]\w*+:(?!//)\S++|(?=[\w-]*[_./\\])[\w./\\-]++",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)
"""`name(...`, `name = ...`, `name:value`, a path or an identifier; neither "(1) list the tickets" nor
"the rent (in euros)"."""
_CALLED = re.compile(r"(\w+)\s*(?:\(|\Z)")
"""A name alone, or before its arguments. "list the tickets" is not a call of a tool `list`."""
_VALUE = re.compile(r"[^\s(),;:={}\[\]'\"`]+")


def select_parts(named: Sequence[str], tools: Sequence[str], is_copied: Callable[[str], bool]) -> list[str]:
    """The parts that are steps, each once: words, or a call of one of `tools`, and not copied from examples."""
    steps = (part for part in named if _is_text(part) or find_named_tool(part, tools))
    return [*dict.fromkeys(part for part in steps if not is_copied(part))]


def reword_calls(parts: Iterable[str], tools: Sequence[str], request: str) -> dict[str, str]:
    """The parts that are written as calls of `tools`, each with the words of the `request` that stand for it.

    Such a call waits for a look at what it works on. Its values were written before anything was known, and shown
    again as what is still to do, a small model copies them: the columns of a query that no table has."""
    words = request[:PART_CHARS].strip()
    return {part: words for part in parts if _CODE.fullmatch(part) and find_named_tool(part, tools)}


def make_copy_check(question: str, context: str, examples: str) -> Callable[[str], bool]:
    """A function that says whether a part is copied from the prompt's `examples`: what it holds beside words of the
    `context` stands there, such as a figure or a thing; or all of it does, and no word in the `question`. Small models
    go on with the examples' steps."""
    explained, texts_of_examples = {*extract_terms(split_name(context))}, _read_texts(examples)
    example_terms = {term for text in texts_of_examples for term in extract_terms(text)}
    question_terms = {*extract_terms(question)}

    def is_copied(part: str) -> bool:
        if part in texts_of_examples and question_terms.isdisjoint(map_query_terms(part)):
            return True
        new = {term for term, word in map_query_terms(part).items() if not is_filler(word)} - explained
        return bool(new) and new <= example_terms

    return is_copied


def _read_texts(examples: str) -> list[str]:
    """The requests, steps and results of the examples. Any step may have the words of the form around them, such as
    "next" and "calls"."""
    texts: list[str] = []
    for line in examples.splitlines():
        if line.startswith("{"):
            texts += json.loads(line)["next"].get("todo", [])
        else:
            texts.append(line.partition(": ")[2])
    return texts


def _is_text(part: str) -> bool:
    return not _CODE.fullmatch(part) and sum(map(str.isalnum, part)) > 1


def find_named_tool(part: str, tools: Iterable[str]) -> str:
    """The tool that a part names, alone or as a call, with or without its server's prefix; "" if none."""
    called = _CALLED.match(part)
    name = called[1].casefold() if called is not None else ""
    return next((tool for tool in tools if name and name in (tool.casefold(), tool.casefold().partition("__")[2])), "")


def is_made(part: str, calls: Iterable[RoundCall]) -> bool:
    """Whether a part is written as a call, and one of `calls` is that call: the same tool with all of its values."""
    if not _CODE.fullmatch(part):
        return False
    made = [call for call in calls if not call.failed and find_named_tool(part, [call.tool])]
    values = [value.casefold() for value in _VALUE.findall(part)[1:]]
    return any(_hold_all(call, values) for call in made)


def _hold_all(call: RoundCall, values: Sequence[str]) -> bool:
    given = {str(leaf).casefold() for _, leaf in iter_leaves(call.args)} | {name.casefold() for name in call.args}
    return all(value in given for value in values)
