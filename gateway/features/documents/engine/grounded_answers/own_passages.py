"""The evidence of a follow-up that was searched with the words of the message before it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from agent.answers.evidence import contains_no_answer_text
from agent.answers.names import find_unexplained_names
from agent.core.models import ChatMessage
from agent.core.run_state import RunState
from agent.policy.guardrails.message_labels import split_attachments
from agent.run_context.outputs import cut_text
from agent.text.follow_up import (
    asks,
    has_personal_pronoun,
    has_pronoun,
    is_pronoun,
    list_content_words,
    list_own_terms,
    names_subject,
    read_alone,
    refers_back,
)
from agent.text.question_parts import has_question_word, is_question, list_sentences
from agent.text.stop_words import detect_language
from agent.text.terms import fold, is_space_separated
from gateway.features.documents.engine.grounded_answers.passage_terms import PassageTerms
from gateway.features.documents.engine.search.models import RetrievedContext

EARLIER_CHARS = 300
MAX_EARLIER, MAX_PEOPLE = 3, 3
"""Messages back in the conversation that a chain of follow-ups may refer to, and people of the newest answer."""
_QUOTATION = "> "
_WORD = re.compile(r"\w+")
_MOST = 0.5
"""A passage without the subject holds more than this share of the words of the message."""


@dataclass(frozen=True, slots=True)
class OwnPassages:
    """The passages that answer a follow-up; `begins_topic` if none is about the subject of the messages before."""

    passages: tuple[RetrievedContext, ...]
    begins_topic: bool = False


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
    questions = [
        message.content.strip() for message, answer in zip_longest(history, history[1:])
        if message.role == "user" and message.content.strip() and not _is_remark(message, answer)
    ]  # fmt: skip
    earlier_texts: list[str] = []
    for text in reversed([text for text in questions if asks(text)][-MAX_EARLIER:]):
        earlier_texts.insert(0, cut_text(text, EARLIER_CHARS))
        if names_subject(text) and not refers_back(text):
            break
    return earlier_texts


def list_people_before(state: RunState) -> list[str]:
    """The people whom the newest answer names, where a pronoun of the message may stand for one: "How do I reach him?"
    asks about the name that was found, not about the words that found it."""
    history = state.retrieval.history if state.retrieval else ()
    if not history or not has_personal_pronoun(get_own_words(state)):
        return []
    return find_unexplained_names(_join_quotations(history[-1].content), "")[:MAX_PEOPLE]


def _is_remark(message: ChatMessage, answer: ChatMessage | None) -> bool:
    """Whether a message asked nothing, and the documents had nothing for it: "perfect, thank you". What follows it
    goes on with what was asked before."""
    text = message.content
    has_question = is_question(text) or has_question_word(text)
    return not has_question and answer is not None and contains_no_answer_text(answer.content)


def _join_quotations(answer: str) -> str:
    """What an answer quotes, line by line; all of an answer that a model wrote."""
    quoted = [line.removeprefix(_QUOTATION) for line in answer.splitlines() if line.startswith(_QUOTATION)]
    return "\n".join(quoted) or answer


def read_topics(message: str) -> list[str]:
    """What a message after others asks if it begins a new topic: its questions, or else its sentences, as they stand
    but without those that refer back by more than a conjunction: "That's not what I asked. And the deposit?" has "And
    the deposit?"."""
    sentences = list_sentences(message)
    asking = [sentence for sentence in sentences if is_question(sentence)]
    return [sentence for sentence in asking or sentences if read_alone(sentence)]


def select_own_passages(question: str, passages: Sequence[RetrievedContext], earlier: Sequence[str]) -> OwnPassages:
    """The passages that hold a word of the follow-up itself and are about its subject, and those of a new topic.

    The words of the messages before (`earlier`) find the subject again, also where the documents do not say what is
    asked of it now: "And in Japan?" is not answered by a passage without Japan, nor by one about an office in Japan if
    the talk is of parental leave. Without `earlier` only the words of the follow-up itself are required. A follow-up
    without such words keeps all passages.
    """
    if not list_own_terms(question):
        return OwnPassages(tuple(passages))
    topics = read_topics(question)
    own = " ".join(topics) or question
    chosen: list[RetrievedContext] = []
    follows = False
    for passage in passages:
        terms = PassageTerms(passage)
        is_about = bool(terms.compute_share(own)) and (not earlier or any(map(terms.compute_share, earlier)))
        if is_about or any(_answers_topic(terms, topic) for topic in topics):
            chosen.append(passage)
            follows = follows or is_about
    return OwnPassages(tuple(chosen), begins_topic=bool(chosen) and not follows)


def lacks_one_word(question: str) -> bool:
    """Whether a follow-up has a pronoun for its subject and asks one thing of it, such as "her number": that the
    passages about the subject lack this word does not show that they lack the answer."""
    return has_pronoun(question) and len(list_own_terms(question)) == 1


def select_about(passages: Sequence[RetrievedContext], earlier: Sequence[str]) -> tuple[RetrievedContext, ...]:
    """The passages that hold most words of one of the messages before."""
    terms = ((one, PassageTerms(one)) for one in passages)
    return tuple(one for one, own in terms if any(own.compute_share(text) > _MOST for text in earlier))


def name_pronoun(phrase: str, follows: str) -> str:
    """A side of a comparison; the content words of the message that it refers to if it is only a pronoun."""
    if not is_pronoun(phrase):
        return phrase
    content = set(list_content_words(follows))
    return " ".join(word for word in _WORD.findall(follows) if fold(word) in content) or phrase


def _answers_topic(terms: PassageTerms, sentence: str) -> bool:
    """Whether a passage answers a sentence without the subject of the messages before.

    It holds most of its words; behind a conjunction, where the sentence may add to that subject, a phrase or a single
    word must also be in the heading: "And the deposit?".
    """
    topic = read_alone(sentence)
    own = list_own_terms(topic)
    if not all(map(is_space_separated, frozenset().union(*own))):  # its terms are pairs of characters
        return terms.has_whole_heading(topic) or (not refers_back(sentence) and terms.compute_share(topic) > _MOST)
    share = terms.compute_share(topic)
    if not refers_back(sentence) or (len(own) > 1 and has_question_word(topic)):
        return share > _MOST
    return share == 1 and terms.has_heading_word(topic)
