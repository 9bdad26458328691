"""Translate: the answer into the user's language, streamed. What cannot be translated is answered in English."""

from time import monotonic

from agent.core.errors import BudgetError, ModelError
from agent.core.events import AnswerStarted, AnswerTranslated
from agent.core.language import name_of
from agent.execution.draft import draft_answer
from agent.execution.run import Run
from agent.execution.shield import secrets_of
from agent.execution.streaming import DeltaWriter
from agent.execution.translator import Translator
from agent.knowledge.tailor.schema import asked_schema


async def translate(run: Run) -> None:
    """Record the answer in the user's language, or why it stays in English."""
    state = run.state
    language = state.understood.language if state.understood else "en"
    answer = await draft_answer(run)
    if asked_schema(state.request.options) is not None:
        why = "an answer in a JSON schema stays as it is"
        await run.emit(AnswerTranslated(language=language, text=None, fallback_reason=why))
        return
    if answer.tool_calls or not answer.text.strip() or await run.engine.languages.detect(answer.text) == language:
        await run.emit(AnswerTranslated(language=language, text=None))
        return
    if state.answering is None or run.epoch > 1:  # an earlier process may have streamed a part of it
        why = f"the result of the steps, translated into {name_of(language)}"
        await run.emit(AnswerStarted(tier=None, model=None, reason=why, restarted=state.answering is not None))
    started = monotonic()
    writer = None if run.room.guard_output.whole else DeltaWriter(run, sources=answer.sources)
    parts: list[str] = []
    reason = None
    try:
        async for piece in Translator(run).answer(answer.text, language):
            parts.append(piece)
            if writer is not None:
                await writer.add(piece)
    except (ModelError, BudgetError) as error:
        reason = error.message
    finally:
        if writer is not None:
            await writer.end()
    text = secrets_of(run).redact("".join(parts)) if reason is None else None
    await run.emit(
        AnswerTranslated(language=language, text=text, fallback_reason=reason, duration=monotonic() - started)
    )
