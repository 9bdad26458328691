"""Understand: detects the language of a request, chooses its route and translates it.

A translated request is routed again. Planning and reasoning run in English.
"""

from dataclasses import dataclass, replace
from time import monotonic

from agent.answers.translator import Translator
from agent.core.errors import BudgetError, ModelError
from agent.core.events import RequestUnderstood
from agent.core.models import JsonObject
from agent.core.models.request import read_explicit_tool_calls
from agent.execution.run_catalogue import build_catalogue
from agent.llm.profile import get_profile_source
from agent.planning.routing import Route, route_request
from agent.run_context.run import Run
from agent.text.language import ENGLISH

NO_MODEL = "no model is configured that could translate"
_UNTRANSLATED_ROUTES = frozenset({"task", "greeting"})
"""Routes without translation: the client's own prompts, and greetings, which a model returns in the same language."""


@dataclass(frozen=True, slots=True)
class _Translation:
    """The result of translating the request. `english` is None if the request stays untranslated."""

    language: str = ENGLISH
    english: str | None = None
    answer_too: bool = False
    fallback_reason: str | None = None
    duration: float = 0.0


async def understand(run: Run) -> None:
    """Records the language, the route and the question."""
    chosen = _choose_route(run, run.state.prompt)
    translation = await _translate(run, chosen)
    if translation.english is not None:
        chosen = _choose_route(run, translation.english)
    await run.note(
        RequestUnderstood(
            route=chosen.kind,
            reason=chosen.reason,
            question=chosen.question,
            skill=chosen.skill,
            language=translation.language,
            translated=translation.english is not None,
            translate_answer=translation.answer_too,
            fallback_reason=translation.fallback_reason,
            profile=describe_profile(run) if run.has_model else None,
            duration=translation.duration,
        )
    )


def describe_profile(run: Run) -> JsonObject:
    """The profile of the run's model for the trace, and its source: a setting, a measurement or the default."""
    source = get_profile_source(run.engine.settings.model_profile, run.engine.models.find_measured(run.room))
    return {**run.profile.model_dump(mode="json"), "source": source}


def _choose_route(run: Run, question: str) -> Route:
    chosen = route_request(
        question,
        room=run.room,
        catalogue=build_catalogue(run),
        tool_calls=bool(read_explicit_tool_calls(run.state.request)),
        has_model=run.has_model,
        commands=run.list_commands(),
    )
    for hooks in run.hooks:
        if any((one.route, one.name) == (chosen.kind, chosen.skill) for one in hooks.list_commands(run)):
            return replace(chosen, question=hooks.describe_command(run, chosen.skill or "", chosen.question))
    return chosen


async def _translate(run: Run, chosen: Route) -> _Translation:
    """The language and, for requests to be planned or answered, the English text. A failure of the translator
    is recorded and does not end the run."""
    if not run.room.planning or chosen.kind in _UNTRANSLATED_ROUTES:
        return _Translation()
    language = await run.engine.languages.detect(chosen.question)
    if language == ENGLISH or run.engine.settings.translate == "off" or (run.has_model and not run.profile.translates):
        return _Translation(language)
    if not run.has_model:
        return _Translation(language, fallback_reason=NO_MODEL)
    # A named skill or tool gets the original text, and so does a router, which copies names from it.
    if chosen.kind not in ("plan", "direct") or run.room.routing == "intents":
        return _Translation(language, answer_too=True)
    started = monotonic()
    try:
        english = await Translator(run).translate_request(chosen.question, language)
    except (ModelError, BudgetError) as error:
        return _Translation(language, fallback_reason=error.message, duration=monotonic() - started)
    return _Translation(language, english, answer_too=True, duration=monotonic() - started)
