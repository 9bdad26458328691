"""The prompt of an answer from passages, and an answer that is written, checked and returned as a whole."""

from collections.abc import Sequence

from agent.core.errors import ModelOutputError
from agent.core.models import ChatMessage, JsonObject
from agent.llm.prompts import format_block
from agent.run_context.outputs import format_data_block
from gateway.features.documents.engine.grounded_answers.answer_builder import AnswerBuilder, BuiltAnswer
from gateway.features.documents.engine.grounded_answers.claim_review import (
    AskAnswer,
    ClaimReview,
    make_rewrite_messages,
)
from gateway.features.documents.engine.grounded_answers.entailment import PASSAGE_CHARS, AskEntailment
from gateway.features.documents.engine.grounded_answers.formats import Format
from gateway.features.documents.engine.grounded_answers.models import Persona, TailorInput, format_place
from gateway.features.documents.engine.prompts import render

QUESTION_CHARS = 8_000
KNOWN_CHARS = 4_000
MEMORY_CHARS = 4_000

TONES: dict[Persona, str] = {
    "Technical": "Write for a technical reader: keep identifiers, units and tables, and leave out no condition.",
    "Executive": "Write for an executive: the conclusion first, and no more than three sentences.",
    "General": "Write plainly, for anybody.",
}


async def write_answer(builder: AnswerBuilder, ask: AskAnswer, ask_entailment: AskEntailment) -> BuiltAnswer:
    """A model's answer as far as it is supported: one or two calls to write it, and one check of each.

    Raises what `ask` raises, and `ModelOutputError` for an empty reply.
    """
    messages = build_messages(builder.request, builder.format)
    text = await ask(messages)
    if not text.strip():
        raise ModelOutputError("the model's answer is empty", agent_id="tailor")
    review = ClaimReview(builder, ask_entailment)
    result = await review.review_text(text)
    if result.failed:
        reply = await ask(make_rewrite_messages(messages, text, result.failed))
        result = await review.review_rewrite(result, reply)
    return await review.build(result)


def build_messages(
    request: TailorInput,
    form: Format,
    *,
    instructions: str = "",
    voice: str = "",
    history: Sequence[JsonObject] = (),
    memories: str = "",
    known: Sequence[str] = (),
    feedback: str | None = None,
    images: tuple[str, ...] = (),
) -> tuple[JsonObject, ...]:
    """The prompt: trusted text in the system message, each passage and the question in blocks of the user's."""
    system = render(
        "tailor",
        system=f"{instructions}\n\n" if instructions else "",
        persona=f"{voice}\n\n" if voice else "",
        tone=TONES[request.persona],
        form=_describe_format(request, form),
    )
    parts = [format_data_block("memory", memories, limit=MEMORY_CHARS)] if memories else []
    parts += [
        format_data_block(
            "result", chunk.content, limit=PASSAGE_CHARS, number=f"[{number}]", source=format_place(chunk)
        )
        for number, chunk in enumerate(request.context_chunks, start=1)
    ]
    parts += [format_data_block("result", text, limit=KNOWN_CHARS) for text in known]
    # After the passages: small models answer a question that they read before long passages with a refusal.
    parts.append(format_data_block("user_request", request.user_query, limit=QUESTION_CHARS))
    if feedback:
        parts.append(f"\nAn earlier answer was not accepted:\n{format_block('feedback', feedback)}")
    user_message = ChatMessage(role="user", content="\n".join(parts), images=images).to_openai()
    return {"role": "system", "content": system}, *history, user_message


def _describe_format(request: TailorInput, form: Format) -> str:
    """The prompt's lines about the form. JSON, lists and tables are made from plain sentences afterwards."""
    lines = []
    if form.shape == "plain" and request.formatting_instructions:
        lines.append(f"- The form that is asked for: {request.formatting_instructions}")
    if form.shape != "plain":
        lines.append("- Write plain sentences only; they are brought into the form that is asked for afterwards.")
    if form.max_sentences is not None:
        lines.append(f"- At most {form.max_sentences} sentences.")
    if form.max_words is not None:
        lines.append(f"- At most {form.max_words} words.")
    return "\n".join(lines)
