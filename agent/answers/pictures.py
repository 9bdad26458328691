"""Pictures that programs of the run have made: they stand in the answer, also where a model leaves them out."""

import re
from collections.abc import Iterable

from agent.core.events import StepOutput
from agent.core.models import PlanStep


def list_pictures(outcomes: Iterable[tuple[PlanStep, StepOutput]], run_id: str) -> dict[str, str]:
    """Returns the pictures of this run that results show, as Markdown by their address; each once, in order."""
    pattern = re.compile(rf"!\[[^\]\n]{{0,200}}\]\((/v1/runs/{re.escape(run_id)}/artifacts/[^\s()]{{1,300}})\)")
    return {match[1]: match[0] for _, output in outcomes for match in pattern.finditer(output.text)}


def format_missing_pictures(pictures: dict[str, str], answer: str) -> str:
    """Returns what to add to an answer so that it shows all pictures; "" if it does."""
    missing = [text for address, text in pictures.items() if address not in answer]
    return "".join(f"\n\n{text}" for text in missing)
