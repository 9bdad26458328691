"""The rewrite of failed claims: what the model gets about them, and how its new sentences replace them."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.llm.prompts import format_block
from gateway.features.documents.engine.grounded_answers.answer_units import Unit, parse_answer
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit

_NUMBERED = re.compile(r"^\s*(\d{1,3})[.):]\s*(.*)$")
_GIVEN_UP = re.compile(r"^[\W_]*$")
SHOWN_CHARS = 600


def describe_problems(failed: Sequence[CheckedUnit]) -> str:
    """The failed sentences as a numbered list, each with its problem."""
    lines = (
        f"{number}. {_format_with_citations(one.unit)[:SHOWN_CHARS]}\n   ({one.problem})"
        for number, one in enumerate(failed, start=1)
    )
    return format_block("problems", "\n".join(lines))


def replace_failed(checked: Sequence[CheckedUnit], reply: str) -> list[Unit]:
    """The units of the answer with the failed ones replaced by the reply's numbered lines.

    A reply without numbers is one text, which replaces all failed units. A failed unit without a replacement stays, and
    fails again.
    """
    lines = _parse_lines(reply)
    kept_texts = {one.unit.folded for one in checked if not one.problem}
    units: list[Unit] = []
    number = 0
    for one in checked:
        if not one.problem:
            units.append(one.unit)
            continue
        number += 1
        text = lines.get(number, "") if lines else reply
        if _GIVEN_UP.match(text):
            units.append(one.unit)
        elif lines:
            units += _replace_with_line(one.unit, text) or [one.unit]
        elif number == 1:
            others = [replace(unit, block=one.unit.block) for unit in parse_answer(text)]
            units += [unit for unit in others if unit.folded not in kept_texts]
    return units


def _replace_with_line(old: Unit, line: str) -> list[Unit]:
    """The units of a line in the old unit's block and with its list marker."""
    return [
        replace(unit, block=old.block, marker="" if at else old.marker)
        for at, unit in enumerate(parse_answer(line))
        if unit.kind in ("sentence", old.kind)
    ]


def _parse_lines(reply: str) -> dict[int, str]:
    """The numbered lines of a reply; a line without a number continues the one above."""
    lines: dict[int, str] = {}
    current = 0
    for line in reply.splitlines():
        match = _NUMBERED.match(line)
        if match is not None and int(match[1]) == len(lines) + 1:
            current = int(match[1])
            lines[current] = match[2].strip()
        elif current and line.strip():
            lines[current] = f"{lines[current]}\n{line.strip()}"
    return lines


def _format_with_citations(unit: Unit) -> str:
    return " ".join(unit.text.split()) + "".join(f" [{number}]" for number in unit.cites)
