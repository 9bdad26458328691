"""The tailor: from retrieved passages to an answer whose every claim points at the words it rests on. Pure."""

from agent.grounded_answers.claims import Unit, read
from agent.grounded_answers.conflicts import Conflict, conflicts
from agent.grounded_answers.grounding import Ground, Verdict
from agent.grounded_answers.locate import citation_id, run_of
from agent.grounded_answers.models import PERSONAS, Persona, SourceCitation, TailorInput, TailorOutput
from agent.grounded_answers.passages import Quote
from agent.grounded_answers.render import Rendered, kept, presentable, render
from agent.grounded_answers.writing import Tailored, Tailoring, write_by_rules

__all__ = [
    "PERSONAS",
    "Conflict",
    "Ground",
    "Persona",
    "Quote",
    "Rendered",
    "SourceCitation",
    "TailorInput",
    "TailorOutput",
    "Tailored",
    "Tailoring",
    "Unit",
    "Verdict",
    "citation_id",
    "conflicts",
    "kept",
    "presentable",
    "read",
    "render",
    "run_of",
    "write_by_rules",
]
