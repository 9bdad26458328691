"""Answers from retrieved passages, whose every claim cites the words that support it (docs/citations.md)."""

from gateway.features.documents.engine.grounded_answers.answer_builder import AnswerBuilder, BuiltAnswer, quote_passages
from gateway.features.documents.engine.grounded_answers.answer_units import parse_answer
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit, EvidenceChecker
from gateway.features.documents.engine.grounded_answers.models import PERSONAS, Persona, TailorInput

__all__ = [
    "PERSONAS",
    "AnswerBuilder",
    "BuiltAnswer",
    "CheckedUnit",
    "EvidenceChecker",
    "Persona",
    "TailorInput",
    "parse_answer",
    "quote_passages",
]
