"""The evidence of a follow-up that was searched with the words of the message before it."""

from collections.abc import Sequence

from agent.core.run_state import RunState
from agent.policy.guardrails.message_labels import split_attachments
from agent.run_context.outputs import cut_text
from agent.text.follow_up import list_own_terms, names_subject, refers_back
from agent.text.snowball import SNOWBALL_LANGUAGES
from agent.text.stop_words import detect_language
from agent.text.terms import extract_terms
from gateway.features.documents.engine.grounded_answers.models import describe_surroundings
from gateway.features.documents.engine.search.models import RetrievedContext

EARLIER_CHARS = 300
MAX_EARLIER = 3
"""Messages back in the conversation that a chain of follow-ups may refer to."""
_MOST = 0.5
"""A passage without the subject holds more than this share of the words of the message."""


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


def list_earlier_questions(state: RunState) -> list[str]:
    """The user's messages that this one may refer to, oldest first: back to one that names its subject."""
    history = state.retrieval.history if state.retrieval else ()
    questions = [message.content.strip() for message in history if message.role == "user" and message.content.strip()]
    earlier_texts: list[str] = []
    for text in reversed(questions[-MAX_EARLIER:]):
        earlier_texts.insert(0, cut_text(text, EARLIER_CHARS))
        if names_subject(text) and not refers_back(text):
            break
    return earlier_texts


def select_own_passages(
    question: str, passages: Sequence[RetrievedContext], earlier: Sequence[str]
) -> tuple[RetrievedContext, ...]:
    """The passages that hold a word of the follow-up itself and are about its subject.

    The words of the messages before (`earlier`) find the subject again, also where the documents do not say what is
    asked of it now: "And in Japan?" is not answered by a passage without Japan, nor by one about an office in Japan if
    the talk is of parental leave. A passage without a word of the subject counts only for a message that does not
    refer back, and if it holds most of its words. Without `earlier` only the words of the follow-up itself are
    required. A follow-up without such words keeps all passages.
    """
    if not list_own_terms(question):
        return tuple(passages)
    back = refers_back(question)
    return tuple(one for one in passages if _is_own(_PassageTerms(one), question, earlier, refers=back))


class _PassageTerms:
    """The search terms of a passage with its headings, as they stand and stemmed in its language."""

    def __init__(self, passage: RetrievedContext) -> None:
        text = f"{describe_surroundings(passage)}\n{passage.content}"
        language = detect_language(text)
        self._languages = (language,) if language in SNOWBALL_LANGUAGES else ()
        self._terms = {term for one in ("", *self._languages) for term in extract_terms(text, one)}

    def compute_share(self, message: str) -> float:
        """The share of a message's own terms that the passage holds, from 0 to 1."""
        own = list_own_terms(message, self._languages)
        return sum(bool(forms & self._terms) for forms in own) / len(own) if own else 0.0


def _is_own(terms: _PassageTerms, question: str, earlier: Sequence[str], *, refers: bool) -> bool:
    share = terms.compute_share(question)
    if share == 0:
        return False
    has_subject = not earlier or any(terms.compute_share(text) for text in earlier)
    return has_subject or (not refers and share > _MOST)
