"""The tailor: from retrieved passages to an answer whose every claim points at the words it rests on. Pure."""

from agent.knowledge.tailor.claims import Unit, read
from agent.knowledge.tailor.conflicts import Conflict, conflicts
from agent.knowledge.tailor.grounding import Ground, Verdict
from agent.knowledge.tailor.locate import citation_id, run_of
from agent.knowledge.tailor.models import PERSONAS, Persona, SourceCitation, TailorInput, TailorOutput
from agent.knowledge.tailor.passages import Quote
from agent.knowledge.tailor.render import Rendered, kept, presentable, render
from agent.knowledge.tailor.writing import Tailored, Tailoring, write_by_rules

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
