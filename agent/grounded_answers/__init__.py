"""Answers from retrieved passages, whose every claim cites the words that support it (docs/citations.md)."""

from agent.grounded_answers.answer_builder import AnswerBuilder, BuiltAnswer, quote_passages
from agent.grounded_answers.answer_units import Unit, parse_answer
from agent.grounded_answers.evidence_checker import CheckedUnit, EvidenceChecker
from agent.grounded_answers.locate import make_citation_id, parse_run_id
from agent.grounded_answers.models import PERSONAS, Persona, Quote, SourceCitation, TailorInput, TailorOutput
from agent.grounded_answers.render import Rendered, render, select_presentable, select_supported

__all__ = [
    "PERSONAS",
    "AnswerBuilder",
    "BuiltAnswer",
    "CheckedUnit",
    "EvidenceChecker",
    "Persona",
    "Quote",
    "Rendered",
    "SourceCitation",
    "TailorInput",
    "TailorOutput",
    "Unit",
    "make_citation_id",
    "parse_answer",
    "parse_run_id",
    "quote_passages",
    "render",
    "select_presentable",
    "select_supported",
]
