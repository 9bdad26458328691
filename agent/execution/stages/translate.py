"""Translate: streams the answer in the user's language. If the translation fails, the answer stays in English."""

from time import monotonic

from agent.answers.evidence import is_no_answer_text, translate_no_answer
from agent.answers.final_answer import build_final_answer
from agent.answers.schema_check import get_requested_schema
from agent.answers.translator import Translator
from agent.core.errors import BudgetError, ModelError
from agent.core.events import AnswerStarted, AnswerTranslated
from agent.run_context.answer_stream import DeltaWriter
from agent.run_context.run import Run
from agent.text.language import get_language_name


async def translate(run: Run) -> None:
    """Records the translated answer, or why it stays in English."""
    state = run.state
    language = state.understanding.language if state.understanding else "en"
    answer = await build_final_answer(run)
    if get_requested_schema(state.request.options) is not None:
        why = "an answer in a JSON schema stays as it is"
        await run.emit(AnswerTranslated(language=language, text=None, fallback_reason=why))
        return
    if answer.tool_calls or not answer.text.strip() or await run.engine.languages.detect(answer.text) == language:
        await run.emit(AnswerTranslated(language=language, text=None))
        return
    if is_no_answer_text(answer.text):  # a fixed sentence, which has a translation
        fixed = translate_no_answer(answer.text, state.prompt)
        await run.emit(AnswerTranslated(language=language, text=fixed))
        return
    if state.answer_start is None or run.epoch > 1:  # an earlier process may have streamed a part of it
        why = f"the result of the steps, translated into {get_language_name(language)}"
        await run.emit(AnswerStarted(tier=None, model=None, reason=why, restarted=state.answer_start is not None))
    started = monotonic()
    writer = None if run.room.guard_output.requires_whole_answer else DeltaWriter(run, sources=answer.sources)
    parts: list[str] = []
    reason = None
    try:
        async for piece in Translator(run).translate_answer(answer.text, language):
            parts.append(piece)
            if writer is not None:
                await writer.add(piece)
    except (ModelError, BudgetError) as error:
        reason = error.message
    finally:
        if writer is not None:
            await writer.end()
    text = "".join(parts) if reason is None else None
    await run.emit(
        AnswerTranslated(language=language, text=text, fallback_reason=reason, duration=monotonic() - started)
    )
