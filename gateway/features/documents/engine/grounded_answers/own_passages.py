"""The evidence of a follow-up that was searched with the words of the message before it."""

from collections.abc import Sequence

from agent.core.run_state import RunState
from agent.policy.guardrails.message_labels import split_attachments
from agent.text.follow_up import list_own_terms
from agent.text.snowball import SNOWBALL_LANGUAGES
from agent.text.stop_words import detect_language
from agent.text.terms import extract_terms
from gateway.features.documents.engine.grounded_answers.models import describe_surroundings
from gateway.features.documents.engine.search.models import RetrievedContext


def choose_question(state: RunState, passages: Sequence[RetrievedContext]) -> str:
    """The question in the user's words if the passages are in their language, or if there are none, else as it
    was translated.

    An answer in the language of its passages can quote them, and a small model understands both sides better.
    """
    understood = state.understanding
    if understood is None or not understood.translated:
        return state.question
    languages = [detect_language(passage.content) for passage in passages]
    same = sum(language == understood.language for language in languages)
    return get_own_words(state) if 2 * same >= len(languages) else state.question


def get_own_words(state: RunState) -> str:
    """The user's message as it was written, without attached texts: documents are searched in its language."""
    translated = state.understanding is not None and state.understanding.translated
    return split_attachments(state.prompt).own.strip() or state.question if translated else state.question


def select_own_passages(
    question: str, passages: Sequence[RetrievedContext], also: Sequence[str] = ()
) -> tuple[RetrievedContext, ...]:
    """The passages that hold a word of the follow-up itself, or one that a model's searches add (`also`).

    The words of the message before find the subject again, also where the documents do not say what is asked of it now:
    "And in Japan?" is not answered by a passage without Japan. A follow-up without such words keeps all passages.
    """
    if not list_own_terms(question):
        return tuple(passages)
    texts = (question, *also)
    return tuple(passage for passage in passages if any(_holds_own_term(text, passage) for text in texts))


def _holds_own_term(question: str, passage: RetrievedContext) -> bool:
    text = f"{describe_surroundings(passage)}\n{passage.content}"
    language = detect_language(text)
    languages = (language,) if language in SNOWBALL_LANGUAGES else ()
    passage_terms = {term for one in ("", *languages) for term in extract_terms(text, one)}
    return any(forms & passage_terms for forms in list_own_terms(question, languages))
