"""The evidence of a follow-up that was searched with the words of the message before it."""

from collections.abc import Sequence

from agent.text.follow_up import list_own_terms
from agent.text.snowball import SNOWBALL_LANGUAGES
from agent.text.stop_words import detect_language
from agent.text.terms import extract_terms
from gateway.features.documents.engine.grounded_answers.models import describe_surroundings
from gateway.features.documents.engine.search.models import RetrievedContext


def select_own_passages(question: str, passages: Sequence[RetrievedContext]) -> tuple[RetrievedContext, ...]:
    """Returns the passages that hold a word of the follow-up itself.

    The words of the message before find the subject again, also where the documents do not say what is asked of it now:
    "And in Japan?" is not answered by a passage without Japan. A follow-up without such words keeps all passages.
    """
    if not list_own_terms(question):
        return tuple(passages)
    return tuple(passage for passage in passages if _holds_own_term(question, passage))


def _holds_own_term(question: str, passage: RetrievedContext) -> bool:
    text = f"{describe_surroundings(passage)}\n{passage.content}"
    language = detect_language(text)
    languages = (language,) if language in SNOWBALL_LANGUAGES else ()
    held = {term for one in ("", *languages) for term in extract_terms(text, one)}
    return any(forms & held for forms in list_own_terms(question, languages))
