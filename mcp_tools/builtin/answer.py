"""`answer_with_citations`: a question answered from the user's documents, in their own words, each with its place."""

import asyncio
import logging
from functools import partial

from pydantic import BaseModel, Field

from agent.core.errors import BudgetError, ModelError
from agent.core.models import Source, SourceCitation
from agent.knowledge.library import Library
from agent.knowledge.tailor import Persona, Tailored, Tailoring, TailorInput, TailorOutput
from agent.knowledge.tailor.asking import write_by_model
from agent.knowledge.tailor.found import clarifying, linked, passages_of
from agent.planning.compare import comparison
from agent.tools import READ_ONLY, Asker, ToolContext, TypedTool
from mcp_tools.builtin.knowledge import SearchKnowledgeInput, search

log = logging.getLogger(__name__)

PASSAGES = 8
"""Passages an answer is made from: enough for two sides of a comparison, little enough to stay with the question."""
LEAST_RELEVANCE = 0.4


class AnswerInput(BaseModel):
    """What is asked, and how the answer is to sound and look."""

    question: str = Field(min_length=1, max_length=4_000, description="the question, complete")
    collection: str = Field(default="", max_length=200, description="where to look; empty for every collection")
    persona: Persona = Field(default="General", description="Technical, Executive or General")
    formatting_instructions: str = Field(
        default="", max_length=1_000, description='e.g. "as JSON", "bullet list", "at most 2 sentences"'
    )


class AnswerWithCitationsTool(TypedTool[AnswerInput, TailorOutput]):
    """Answers from the caller's collections, every claim held against the words it cites: by the model of the run, and
    without one by the documents' own sentences."""

    name = "answer_with_citations"
    description = (
        "Answer a question from the user's own documents; every claim is checked and comes with the quoted words, page "
        "and place it rests on; says so where the documents don't say."
    )
    annotations = READ_ONLY
    tainted = True
    keywords = ("document", "documents", "answer", "cite", "citation", "quote", "source", "policy", "manual")
    Input = AnswerInput
    Output = TailorOutput

    def __init__(self, library: Library, browser_url: str | None = None) -> None:
        super().__init__()
        self._library = library
        self._browser_url = browser_url

    async def run(self, args: AnswerInput, context: ToolContext) -> TailorOutput:
        """Look each side of the question up, and tell what was found."""
        topics = tuple(topic.query for topic in comparison(args.question))
        found = [
            await search(
                self._library.preferring(context.retrieval_mode),
                SearchKnowledgeInput(
                    query=query, collection=args.collection, top_k=PASSAGES, min_relevance_score=LEAST_RELEVANCE
                ),
                context.owner,
            )
            for query in topics or (args.question,)
        ]
        values = [output.model_dump(mode="json") for output in found]
        passages = passages_of(values)
        wanted = TailorInput(
            user_query=args.question,
            context_chunks=linked(passages, self._browser_url),
            persona=args.persona,
            formatting_instructions=args.formatting_instructions or None,
            topics=topics,
            clarify=clarifying(values),
        )
        return (await _written(Tailoring(wanted, run_id=context.run_id), context.model)).output

    def text(self, output: TailorOutput) -> str:
        """The answer, and what its numbers stand for."""
        names: dict[int, str] = {}
        for one in output.citations:
            names.setdefault(one.number, _place(one))
        listed = "\n".join(f"[{number}] {name}" for number, name in names.items())
        return f"{output.content}\n\n{listed}" if listed else output.content

    def sources(self, output: TailorOutput) -> tuple[Source, ...]:
        """The cited pages, with the quoted words."""
        found: dict[int, Source] = {}
        for one in output.citations:
            quotes = (*found[one.number].quotes, one.text_snippet) if one.number in found else (one.text_snippet,)
            found[one.number] = Source(id=one.number, name=_place(one), url=one.url, quotes=quotes)
        return tuple(found.values())


async def _written(tailoring: Tailoring, model: Asker | None) -> Tailored:
    """The answer by the model; by rule where there is none, where it fails (which the log has), and where nothing was
    found: what is not there is not asked of a model."""
    if model is not None and tailoring.wanted.context_chunks:
        try:
            return await write_by_model(tailoring, partial(model.ask, tier="high"))
        except (ModelError, BudgetError) as error:
            log.warning("an answer is made by rule: %s", error.message)
    return await asyncio.to_thread(tailoring.by_rules)


def _place(one: SourceCitation) -> str:
    return f"{one.source}, page {one.page}" if one.page is not None else one.source
