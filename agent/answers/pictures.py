"""Pictures that programs of the run have made: they stand in the answer, also where a model leaves them out."""

import re
from collections.abc import Iterable

from agent.core.events import StepOutput
from agent.core.models import PlanStep

_PICTURE = re.compile(r"!\[[^\]\n]{0,200}\]\((/v1/runs/([^/\s()]+)/artifacts/[^\s()]{1,300})\)")


def list_pictures(outcomes: Iterable[tuple[PlanStep, StepOutput]], run_id: str) -> dict[str, str]:
    """The pictures of this run that results show, as Markdown by their address; each once, in order."""
    found = (match for _, output in outcomes for match in _PICTURE.finditer(output.text))
    return {match[1]: match[0] for match in found if match[2] == run_id}


def format_missing_pictures(pictures: dict[str, str], answer: str) -> str:
    """Returns what to add to an answer so that it shows all pictures; "" if it does."""
    missing = [text for address, text in pictures.items() if address not in answer]
    return "".join(f"\n\n{text}" for text in missing)
