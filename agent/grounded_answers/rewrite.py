"""The one second chance: what a model is told of its failed sentences, and how its new ones take their place."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.grounded_answers.claims import Unit, read
from agent.grounded_answers.grounding import Ground, Verdict
from agent.text.terms import fold

_NUMBERED = re.compile(r"^\s*(\d{1,3})[.):]\s*(.*)$")
_GIVEN_UP = re.compile(r"^[\W_]*$")
SHOWN_CHARS = 600


def problems(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The units that failed."""
    return [verdict for verdict in verdicts if verdict.problem]


def told(failed: Sequence[Verdict]) -> str:
    """The failed sentences, numbered, each with what is wrong with it."""
    return "\n".join(
        f"{number}. {_with_cites(verdict)[:SHOWN_CHARS]}\n   ({verdict.problem})"
        for number, verdict in enumerate(failed, start=1)
    )


def rewritten(verdicts: Sequence[Verdict], reply: str, ground: Ground) -> list[Verdict]:
    """The units, those that failed replaced by what the reply has for them, checked again. A reply that numbers nothing
    is read as one new text and stands where the first failed."""
    lines = _lines(reply)
    said = {_said(verdict.unit) for verdict in verdicts if not verdict.problem}
    done: list[Verdict] = []
    number = 0
    for verdict in verdicts:
        if not verdict.problem:
            done.append(verdict)
            continue
        number += 1
        text = lines.get(number) if lines else (reply if number == 1 else None)
        if text is None or _GIVEN_UP.match(text):
            done.append(verdict)
            continue
        done += _in_place_of(verdict, text, ground, said, in_line=bool(lines))
    return done


def _in_place_of(failed: Verdict, text: str, ground: Ground, said: set[str], *, in_line: bool) -> list[Verdict]:
    """The new units; those of a line take the old one's block and marker, and those of a whole text that have been
    said already are not said again."""
    old = failed.unit
    units = read(text)
    if in_line:
        units = [
            replace(unit, block=old.block, marker="" if at else old.marker)
            for at, unit in enumerate(units)
            if unit.kind in ("sentence", old.kind)
        ]
    else:
        units = [replace(unit, block=old.block) for unit in units if _said(unit) not in said]
    return ground.check(units) or [failed]


def _said(unit: Unit) -> str:
    return " ".join(fold(unit.text).split())


def _lines(reply: str) -> dict[int, str]:
    """The numbered lines of a reply; a line without a number belongs to the one above."""
    found: dict[int, str] = {}
    current = 0
    for line in reply.splitlines():
        match = _NUMBERED.match(line)
        if match is not None and int(match[1]) == len(found) + 1:
            current = int(match[1])
            found[current] = match[2].strip()
        elif current and line.strip():
            found[current] = f"{found[current]}\n{line.strip()}"
    return found


def _with_cites(verdict: Verdict) -> str:
    unit = verdict.unit
    return " ".join(unit.text.split()) + "".join(f" [{number}]" for number in unit.cites)
