"""Questions that name a section by its number ("section 5", "clause 2.2", "item 3"), and what stands in it."""

import re

from agent.grounded_answers.models import headings_of
from agent.grounded_answers.passages import Passage

WORDS = (
    "section|chapter|article|clause|item|paragraph|part|step|appendix|annex|point|avsnitt|kapitel|punkt|artikel|paragraf|"
    "abschnitt|absatz|ziffer|klausel|schritt"
)
_ASKED = re.compile(rf"(?:\b(?:{WORDS})|\u00a7)\s*(\d{{1,3}}(?:\.\d{{1,3}})*)(?![\w%]|[.,]\d)", re.IGNORECASE)
_NUMBERED = re.compile(rf"^\W*(?:(?:{WORDS})\s*)?(\d{{1,3}}(?:\.\d{{1,3}})*)(?![\w%])", re.IGNORECASE)


def asked_section(question: str) -> str:
    """The number of the section a question names; empty where it names none."""
    match = _ASKED.search(question)
    return match[1] if match is not None else ""


def is_in(number: str, passage: Passage, at: int) -> bool:
    """Whether a part stands in the section of that number: below its heading, or beginning with it."""
    texts = (*headings_of(passage.chunk), passage.label(at), passage.parts[at].piece.marker, passage.parts[at].text)
    told = [match[1] for text in texts if (match := _NUMBERED.match(text)) is not None]
    return any(one == number or one.startswith(f"{number}.") for one in told)
