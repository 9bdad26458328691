"""Collects what a grounded answer is made from: passages of the steps, persona, format; and builds the prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.events import StepOutput
from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.run_state import StepResult
from agent.run_context.conversation import build_instructions, name_language, remove_instructions
from agent.run_context.run import Run
from agent.text.terms import extract_terms
from gateway.features.documents.engine.comparisons import parse_comparison
from gateway.features.documents.engine.grounded_answers import PERSONAS, Persona, TailorInput
from gateway.features.documents.engine.grounded_answers.entailment import PASSAGE_CHARS
from gateway.features.documents.engine.grounded_answers.formats import Format
from gateway.features.documents.engine.grounded_answers.from_tool_results import (
    add_file_links,
    has_passages,
    read_clarifying_question,
    read_passages,
)
from gateway.features.documents.engine.grounded_answers.generate import build_messages
from gateway.features.documents.engine.grounded_answers.models import list_headings
from gateway.features.documents.engine.grounded_answers.offered_subjects import find_chosen_subjects
from gateway.features.documents.engine.grounded_answers.own_passages import (
    choose_question,
    get_own_words,
    lacks_one_word,
    list_earlier_questions,
    list_people_before,
    name_pronoun,
    select_about,
    select_own_passages,
)
from gateway.features.documents.engine.search.models import RetrievedContext

PROMPT_CHARS = 32_000
"""Characters of all passages in a prompt: about 8,000 tokens. The more relevant ones come first."""
HISTORY_MESSAGES = 20


@dataclass(frozen=True, slots=True)
class Brief:
    """A grounded answer to be written.

    `known` are tool results without a source. `is_extractive` says that all results are passages, so that the answer
    can be given without a model too. `voice` is a persona of the room that is none of `PERSONAS`."""

    request: TailorInput
    known: tuple[str, ...] = ()
    is_extractive: bool = True
    voice: str = ""


def build_brief(run: Run, outcomes: Sequence[StepResult]) -> Brief | None:
    """The brief of an answer from documents in a room that cites, or None if nothing was searched."""
    room = run.room
    outputs = [output for _, output in outcomes if has_passages(output.value)]
    others = [(step, output) for step, output in outcomes if not has_passages(output.value)]
    if room.knowledge:
        if not outputs:
            return None
        clarify = read_clarifying_question(output.value for output in outputs)
        return _make_brief(
            run, read_passages(output.value for output in outputs), others, is_extractive=not others, clarify=clarify
        )
    # In other rooms, the sources are what tools quote. Rooms with their own gates check their answers themselves.
    if room.gates or room.required_tools or any(not output.sources for _, output in others):
        return None
    quoted = [passage for step, output in others for passage in _list_quoted_passages(step, output)]
    return _make_brief(run, (*read_passages(output.value for output in outputs), *quoted), (), is_extractive=not others)


def build_prompt(run: Run, brief: Brief, form: Format, feedback: str | None) -> tuple[JsonObject, ...]:
    """The prompt of an answer in a run, with its conversation and memories."""
    history = run.state.retrieval.history if run.state.retrieval else ()
    memories = run.state.retrieval.items if run.state.retrieval else ()
    return build_messages(
        brief.request,
        form,
        instructions="\n\n".join(filter(None, (build_instructions(run, history), name_language(run)))),
        voice=brief.voice,
        history=[one.to_openai() for one in remove_instructions(history)][-HISTORY_MESSAGES:],
        memories="\n".join(f"- {item.text}" for item in memories),
        known=brief.known,
        feedback=feedback,
        images=run.state.request.images,
    )


def _make_brief(
    run: Run,
    passages: Sequence[RetrievedContext],
    others: Sequence[StepResult],
    *,
    is_extractive: bool,
    clarify: str = "",
) -> Brief:
    metadata = run.state.request.metadata
    persona, voice = _select_persona(metadata.get("persona"), run.room.persona)
    own = get_own_words(run.state)
    topics = tuple(topic.query for topic in parse_comparison(own)) if run.room.knowledge else ()
    followed = next((proposed for proposed in run.state.plans if proposed.follows), None)
    follows = followed.follows if followed else ""
    chosen = find_chosen_subjects(run.state, own) if run.room.knowledge else None
    is_closest = False
    if chosen is not None:
        passages = _select_under_headings(passages, chosen.subjects)
    elif followed is not None and topics:
        topics = tuple(name_pronoun(topic, follows) for topic in topics)
    elif followed is not None:
        before = (*list_earlier_questions(run.state), *list_people_before(run.state))
        # A model's searches may name the subject themselves, also one that only an earlier answer named.
        earlier = () if followed.plan.origin == "llm" and _names_more(followed.plan, own, before) else before
        selected = select_own_passages(own, passages, earlier)
        is_closest = not selected.passages and not run.plans_with_model and lacks_one_word(own)
        passages = select_about(passages, earlier) if is_closest else selected.passages
        follows = "" if selected.begins_topic else follows
    request = TailorInput(
        user_query=chosen.question if chosen else choose_question(run.state, passages),
        context_chunks=add_file_links(_limit_passages(passages), run.engine.settings.browser_url),
        is_closest=is_closest,
        persona=persona,
        formatting_instructions=_read_format_instructions(run),
        clarify=clarify,
        topics=topics,
        follows=follows,
    )
    return Brief(request, tuple(output.text for _, output in others), is_extractive, voice)


def _names_more(plan: Plan, own: str, earlier: Sequence[str]) -> bool:
    """Whether a plan searches for words that neither the message nor the messages before it have."""
    queries = (str(step.args.get("query", "")) for step in plan.steps)
    return not {*extract_terms("\n".join((own, *earlier)))}.issuperset(extract_terms("\n".join(queries)))


def _select_under_headings(passages: Sequence[RetrievedContext], headings: Sequence[str]) -> Sequence[RetrievedContext]:
    """The passages under one of some headings; all, if none stands there."""
    under = [
        one
        for one in passages
        if set(headings).intersection(" ".join(heading.split()) for heading in list_headings(one))
    ]
    return under or passages


def _select_persona(requested: JsonValue, room: str) -> tuple[Persona, str]:
    """The persona of the request or the room, and the room's voice if its persona has another name."""
    room_persona = _parse_persona(room)
    return _parse_persona(requested) or room_persona or "General", "" if room_persona else room


def _parse_persona(text: JsonValue) -> Persona | None:
    wanted = text.strip().lower() if isinstance(text, str) else ""
    return next((persona for persona in PERSONAS if persona.lower() == wanted), None)


def _read_format_instructions(run: Run) -> str | None:
    instructions = run.state.request.metadata.get("formatting_instructions")
    form = run.state.request.options.get("response_format")
    wanted = [instructions] if isinstance(instructions, str) and instructions.strip() else []
    if isinstance(form, dict) and form.get("type") == "json_object":
        wanted.append("as JSON")
    return "; ".join(wanted) or None


def _limit_passages(passages: Sequence[RetrievedContext]) -> tuple[RetrievedContext, ...]:
    """As many passages as a prompt holds, at least the first."""
    limited: list[RetrievedContext] = []
    chars_left = PROMPT_CHARS
    for passage in passages:
        chars_left -= min(len(passage.content), PASSAGE_CHARS)
        if limited and chars_left < 0:
            break
        limited.append(passage)
    return tuple(limited)


def _list_quoted_passages(step: PlanStep, output: StepOutput) -> list[RetrievedContext]:
    """The quotes of a tool's sources as passages; the whole result if it has one source."""
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
