"""`answer_with_citations`: answers a question with sentences of the user's documents, each with its source."""

import asyncio
import logging
from dataclasses import replace
from functools import partial

from pydantic import Field

from agent.core.errors import BudgetError, ModelError
from agent.core.models import DeferredModel, JsonObject, Source, SourceCitation, TailorOutput
from agent.tools import READ_ONLY, PlanHints, ToolContext, ToolModel, ToolResult, TypedTool
from gateway.features.documents.engine.comparisons import parse_comparison
from gateway.features.documents.engine.grounded_answers import AnswerBuilder, BuiltAnswer, Persona, TailorInput
from gateway.features.documents.engine.grounded_answers.from_tool_results import (
    add_file_links,
    read_clarifying_question,
    read_passages,
)
from gateway.features.documents.engine.grounded_answers.generate import write_answer
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.tools.knowledge import SearchKnowledgeInput, search_collections

log = logging.getLogger(__name__)

MAX_PASSAGES = 8
"""Passages an answer is made from: enough for two sides of a comparison, few enough to stay with the question."""


class AnswerInput(DeferredModel):
    """Arguments of `answer_with_citations`."""

    question: str = Field(min_length=1, max_length=4_000, description="the complete question")
    collection: str = Field(default="", max_length=200, description="where to look; empty for every collection")
    persona: Persona = Field(default="General", description="Technical, Executive or General")
    formatting_instructions: str = Field(
        default="", max_length=1_000, description='e.g. "as JSON", "bullet list", "at most 2 sentences"'
    )


class AnswerWithCitationsTool(TypedTool[AnswerInput, TailorOutput]):
    """Answers from the caller's collections and checks every claim against the words it cites.

    The run's model writes the answer, and a second call checks it. Without a model the passages are quoted.
    """

    name = "answer_with_citations"
    description = (
        "Answer a question from the user's own documents; every claim is checked and comes with the quoted words, "
        "their page and place; says so if the documents do not answer it."
    )
    annotations = READ_ONLY
    tainted = True
    keywords = ("document", "documents", "answer", "cite", "citation", "quote", "source", "policy", "manual")
    hints = PlanHints(source="collections")

    def __init__(self, library: Library, browser_url: str | None = None) -> None:
        super().__init__()
        self._library = library
        self._browser_url = browser_url

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Calls the tool. The list of the sources follows the answer, except if a form was asked for."""
        output = await self.run(self.Input.model_validate(args), context)
        result = self.make_result(output)
        return replace(result, text=output.content) if args.get("formatting_instructions") else result

    async def run(self, args: AnswerInput, context: ToolContext) -> TailorOutput:
        """Searches for each side of the question and answers from the passages."""
        topics = tuple(topic.query for topic in parse_comparison(args.question))
        results = [
            await search_collections(
                self._library.in_room(context.retrieval_mode, context.collections),
                SearchKnowledgeInput(query=query, collection=args.collection, top_k=MAX_PASSAGES),
                context.owner,
            )
            for query in topics or (args.question,)
        ]
        values = [output.model_dump(mode="json") for output in results]
        passages = read_passages(values)
        request = TailorInput(
            user_query=args.question,
            context_chunks=add_file_links(passages, self._browser_url),
            persona=args.persona,
            formatting_instructions=args.formatting_instructions or None,
            topics=topics,
            clarify=read_clarifying_question(values),
        )
        return (await _write_answer(AnswerBuilder(request, run_id=context.run_id), context.model)).output

    def format_text(self, output: TailorOutput) -> str:
        """The answer and the list of its sources."""
        names: dict[int, str] = {}
        for one in output.citations:
            names.setdefault(one.number, _format_place(one))
        listed = "\n".join(f"[{number}] {name}" for number, name in names.items())
        return f"{output.content}\n\n{listed}" if listed else output.content

    def list_sources(self, output: TailorOutput) -> tuple[Source, ...]:
        """The cited pages with the quoted words."""
        results: dict[int, Source] = {}
        for one in output.citations:
            quotes = (*results[one.number].quotes, one.text_snippet) if one.number in results else (one.text_snippet,)
            results[one.number] = Source(id=one.number, name=_format_place(one), url=one.url, quotes=quotes)
        return tuple(results.values())


async def _write_answer(builder: AnswerBuilder, model: ToolModel | None) -> BuiltAnswer:
    """The model's answer; the passages themselves if there is no model, it fails (which is logged), or nothing
    was found."""
    if model is not None and builder.request.context_chunks:
        try:
            return await write_answer(builder, partial(model.ask, tier="high"), partial(_ask_entailment, model))
        except (ModelError, BudgetError) as error:
            log.warning("the passages are quoted, because the model failed: %s", error.message)
    return await asyncio.to_thread(builder.quote_passages)


async def _ask_entailment(model: ToolModel, messages: tuple[JsonObject, ...], max_tokens: int) -> str:
    """Asks the fast tier. A tool's model has no limit of its own for the tokens of a reply."""
    del max_tokens
    return await model.ask(messages, tier="fast")


def _format_place(one: SourceCitation) -> str:
    return f"{one.source}, page {one.page}" if one.page is not None else one.source
