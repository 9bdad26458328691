"""What a tailored answer is made from: the passages the steps found, persona and form, and the prompt of the model."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.events import StepOutput
from agent.core.languages import ENGLISH, get_language_name
from agent.core.models import ChatMessage, JsonObject, PlanStep
from agent.grounded_answers import PERSONAS, Persona, TailorInput
from agent.grounded_answers.asking import PASSAGE_CHARS, TONES, form_lines
from agent.grounded_answers.formats import Format
from agent.grounded_answers.found import clarifying, is_found, linked, passages_of
from agent.grounded_answers.models import place_name
from agent.planning.compare import parse_comparison
from agent.prompts import render
from agent.run_context.outputs import data_block
from agent.run_context.run import Run
from agent.search.models import RetrievedContext

PROMPT_CHARS = 32_000
"""Characters of all passages that a model is shown; about 8,000 tokens. The better ones come first."""
QUESTION_CHARS = 8_000
KNOWN_CHARS = 4_000
MEMORY_CHARS = 4_000
HISTORY_MESSAGES = 20


@dataclass(frozen=True, slots=True)
class Brief:
    """A tailored answer to be written. `known` are results without a source; `extractive` says that all there is to
    tell stands in passages, so that it can be told without a model too. `voice` is the room's own persona."""

    wanted: TailorInput
    known: tuple[str, ...] = ()
    extractive: bool = True
    voice: str = ""


def brief_for(run: Run, outcomes: Sequence[tuple[PlanStep, StepOutput]]) -> Brief | None:
    """The brief of an answer from documents; None where the room does not cite or nothing was looked up."""
    room = run.room
    if not (room.knowledge or room.citations) or not outcomes:
        return None
    found = [output for _, output in outcomes if is_found(output.value)]
    others = [(step, output) for step, output in outcomes if not is_found(output.value)]
    if room.knowledge:
        if not found:
            return None
        clarify = clarifying(output.value for output in found)
        return _brief(
            run, passages_of(output.value for output in found), others, extractive=not others, clarify=clarify
        )
    # Elsewhere sources are what a tool quotes. Rooms with gates of their own know better what an answer must hold.
    if room.gates or room.required_tools or any(not output.sources for _, output in others):
        return None
    quoted = [passage for step, output in others for passage in _quoted(step, output)]
    return _brief(run, (*passages_of(output.value for output in found), *quoted), (), extractive=not others)


def tailor_messages(run: Run, brief: Brief, form: Format, feedback: str | None) -> tuple[JsonObject, ...]:
    """Trusted text in the system message; the question and the numbered passages, each in its own block, in the
    user's."""
    history = run.state.retrieval.history if run.state.retrieval else ()
    memories = run.state.retrieval.items if run.state.retrieval else ()
    messages: list[JsonObject] = [{"role": "system", "content": _system(run, brief, form, history)}]
    messages += [one.to_openai() for one in history if one.role not in ("system", "developer")][-HISTORY_MESSAGES:]
    parts = [data_block("user_request", run.state.question, limit=QUESTION_CHARS)]
    if memories:
        remembered = "\n".join(f"- {item.text}" for item in memories)
        parts.insert(0, data_block("memory", remembered, limit=MEMORY_CHARS))
    for number, chunk in enumerate(brief.wanted.context_chunks, start=1):
        parts.append(
            data_block("result", chunk.content, limit=PASSAGE_CHARS, number=f"[{number}]", source=place_name(chunk))
        )
    parts += [data_block("result", text, limit=KNOWN_CHARS) for text in brief.known]
    question = "\n".join(parts)
    if feedback:
        question += f"\n\nAn earlier answer was not accepted: {feedback}"
    messages.append(ChatMessage(role="user", content=question, images=run.state.request.images).to_openai())
    return tuple(messages)


def _brief(
    run: Run,
    passages: Sequence[RetrievedContext],
    others: Sequence[tuple[PlanStep, StepOutput]],
    *,
    extractive: bool,
    clarify: str = "",
) -> Brief:
    metadata = run.state.request.metadata
    persona, voice = _persona(metadata.get("persona"), run.room.persona)
    topics = tuple(topic.query for topic in parse_comparison(run.state.question)) if run.room.knowledge else ()
    wanted = TailorInput(
        user_query=run.state.question,
        context_chunks=linked(_fitting(passages), run.engine.settings.browser_url),
        persona=persona,
        formatting_instructions=_instructions(run),
        clarify=clarify,
        topics=topics,
    )
    return Brief(wanted, tuple(output.text for _, output in others), extractive, voice)


def _persona(asked: JsonValue, room: str) -> tuple[Persona, str]:
    """The persona a request or a room names, and the room's voice where it is no such name."""
    named = _named(room)
    return _named(asked) or named or "General", "" if named else room


def _named(text: JsonValue) -> Persona | None:
    wanted = text.strip().lower() if isinstance(text, str) else ""
    return next((persona for persona in PERSONAS if persona.lower() == wanted), None)


def _instructions(run: Run) -> str | None:
    asked = run.state.request.metadata.get("formatting_instructions")
    form = run.state.request.options.get("response_format")
    wanted = [asked] if isinstance(asked, str) and asked.strip() else []
    if isinstance(form, dict) and form.get("type") == "json_object":
        wanted.append("as JSON")
    return "; ".join(wanted) or None


def _fitting(passages: Sequence[RetrievedContext]) -> tuple[RetrievedContext, ...]:
    """As many passages as a prompt holds, the first in any case."""
    kept: list[RetrievedContext] = []
    room = PROMPT_CHARS
    for passage in passages:
        room -= min(len(passage.content), PASSAGE_CHARS)
        if kept and room < 0:
            break
        kept.append(passage)
    return tuple(kept)


def _quoted(step: PlanStep, output: StepOutput) -> list[RetrievedContext]:
    """What a tool's sources quote, as passages; the whole result where it has one source."""
    texts = (
        [(output.sources[0], output.text)]
        if len(output.sources) == 1 and step.action == "tool"
        else [(source, quote) for source in output.sources for quote in source.quotes]
    )
    return [
        RetrievedContext(
            chunk_id=f"{step.id}.{number}",
            content=text,
            source_id=source.url or source.name,
            source_url=source.url,
            relevance_score=1.0,
            metadata={"source": source.name},
        )
        for number, (source, text) in enumerate(texts, start=1)
        if text.strip()
    ]


def _system(run: Run, brief: Brief, form: Format, history: Sequence[ChatMessage]) -> str:
    callers = "\n\n".join(m.content for m in history if m.role in ("system", "developer") and m.content)
    recalled = run.state.retrieval.items if run.state.retrieval else ()
    memory = render("memory") if recalled else ""
    operator = "\n\n".join(part for part in (run.room.system_prompt, callers, memory, _language(run)) if part)
    return render(
        "tailor",
        system=f"{operator}\n\n" if operator else "",
        persona=f"{brief.voice}\n\n" if brief.voice else "",
        tone=TONES[brief.wanted.persona],
        form=form_lines(brief.wanted, form),
    )


def _language(run: Run) -> str:
    understood = run.state.understanding
    if understood is None or understood.language == ENGLISH or understood.translated:
        return ""
    return f"Answer in {get_language_name(understood.language)}, the language of the request."
