"""Labels the messages that a client sends along: which are the user's words, and which came from outside.

A client may send any history. An assistant message counts as ours only if it is known by its digest as an answer that
this gateway wrote for the same owner. `agent.run_context.message_labels` looks the digests up. Pure.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from agent.core.events import TextLabel
from agent.core.models import ChatMessage, JsonObject
from agent.core.surrogates import replace_surrogates
from agent.llm.provider_fields import iter_reasoning_texts

WRAPPERS_OF_CLIENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "Open WebUI": (
        "context", "contexts", "source", "sources", "attached_files", "attached_file", "file", "files", "documents",
        "search_results",
    ),
    "VS Code": ("attachments", "attachment", "editorContext", "selection"),
    "Cursor": ("code_selection", "open_and_recently_viewed_files"),
    "Cline, Roo Code": (
        "file_content", "folder_content", "url_content", "environment_details", "workspace_diagnostics",
        "terminal_output", "git_working_state", "git_commit",
    ),
    "clients that write documents as Claude's guide says": ("document", "document_content"),
    "clients that pass results on as the user's messages": ("tool_response", "tool_result", "tool_results"),
}  # fmt: skip
"""The tags around text that clients put into a message of the user or the system."""
_PLACEHOLDERS: Final = frozenset({"file", "files", "document", "selection", "attachment"})
"""Names that people write in angle brackets themselves: `cp <file>`. Without an attribute and a closing tag they wrap
nothing."""
_WRAPPERS: Final = frozenset(name.lower() for names in WRAPPERS_OF_CLIENTS.values() for name in names)
_OPENING: Final = re.compile(r"<([A-Za-z_]{4,32})(?=[\s>/])(\s+[\w:-]+\s*=)?")
"""The beginning of a tag, with its first attribute. Its end says nothing: attributes have values that others chose,
with any character. Names are looked up: to try all of them at each `<` of a megabyte took seconds."""
_CLOSING: Final = re.compile(r"</([A-Za-z_]{4,32})\s*>")
_TASK: Final = re.compile(r"\s*#{2,4} Task:", re.IGNORECASE)
_CHAT_HISTORY: Final = re.compile(r"<chat_history>|#{2,4} Chat History", re.IGNORECASE)
_ADDED_BLOCK: Final = re.compile(
    r"<(details|think|thinking|thought|reasoning|status)(?=[\s>])[^<>]*>"
    r"(?:(?!<\1(?=[\s>])).)*?</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
"""A block that clients add to an answer: its reasoning, its tool calls, its progress. The innermost of nested ones."""
MAX_NESTING: Final = 10


class SplitText(NamedTuple):
    """A message's own words, and the text that a client put into it."""

    own: str
    attached: str = ""


def split_attachments(text: str) -> SplitText:
    """Splits a user's or a system message into its own words and what a client attached in a known wrapper.

    The attached part reaches from the first opening tag to the last closing one: a document that contains a closing
    tag cannot end it. Without a closing tag it reaches to the end. A client's background task over a chat is attached
    as a whole.
    """
    if _TASK.match(text) and _CHAT_HISTORY.search(text):
        return SplitText("", text)
    if "<" not in text:
        return SplitText(text)
    # Without an attribute and any `>` behind it, it is no tag: "What does <context mean?"
    last = text.rfind(">")
    closing_tags = [match for match in _CLOSING.finditer(text) if match[1].lower() in _WRAPPERS]
    ends = {match[1].lower(): match.start() for match in closing_tags}  # of each name the last one
    openings = [
        match.start()
        for match in _OPENING.finditer(text)
        if (name := match[1].lower()) in _WRAPPERS
        and (match[2] or match.start() < (ends.get(name, -1) if name in _PLACEHOLDERS else last))
    ]
    if not openings:
        return SplitText(text)
    closings = [match.end() for match in closing_tags]
    end = closings[-1] if closings and closings[-1] > openings[-1] else len(text)
    return SplitText(f"{text[: openings[0]].strip()}\n{text[end:].strip()}".strip(), text[openings[0] : end])


def remove_added_blocks(text: str) -> str:
    """An assistant message without the blocks of reasoning, details and status that clients add."""
    for _ in range(MAX_NESTING):
        shorter = _ADDED_BLOCK.sub("", text)
        if shorter == text:
            break
        text = shorter
    return text.strip()


def compute_digests(text: str) -> tuple[str, ...]:
    """The digests of an answer: of the whole, and of what is left without added blocks if that differs."""
    whole = _digest(text)
    shorter = remove_added_blocks(text)
    return (whole,) if shorter in ("", text.strip()) else tuple(dict.fromkeys((whole, _digest(shorter))))


def compute_reasoning_digests(fields: JsonObject) -> tuple[str, ...]:
    """The digests of the reasoning in a message's provider fields, which goes to models beside its text."""
    texts = iter_reasoning_texts(fields) if fields else ()
    return tuple(dict.fromkeys(_digest(text) for text in texts if text.strip()))


def list_digests(messages: Sequence[ChatMessage]) -> tuple[str, ...]:
    """The digests by which the assistant messages may be known, each once."""
    answers = [one for one in messages if one.role == "assistant" and not one.tool_calls]
    texts = (digest for one in answers if one.content.strip() for digest in compute_digests(one.content))
    reasoning = (digest for one in answers for digest in compute_reasoning_digests(one.provider_fields))
    return tuple(dict.fromkeys((*texts, *reasoning)))


def label_message(message: ChatMessage, known: Mapping[str, TextLabel]) -> TextLabel:
    """The label of one message of a client. `known` has the labels of our answers by their digests."""
    if message.role == "tool" or message.tool_calls:
        return TextLabel(source="tool", trusted=False, private=True)
    if message.role == "assistant":
        return _label_answer(message, known)
    if message.images or split_attachments(message.content).attached:  # a picture can hold a text
        return TextLabel(source="attachment", trusted=False, private=True)
    return TextLabel(source="user" if message.role == "user" else "instructions", trusted=True)


def _label_answer(message: ChatMessage, known: Mapping[str, TextLabel]) -> TextLabel:
    """The label of an assistant message: the worst of those of its text and its reasoning. Without either, it says
    nothing.
    """
    labels = [known.get(digest) for digest in compute_reasoning_digests(message.provider_fields)]
    if message.content.strip():
        labels.append(next((known[one] for one in compute_digests(message.content) if one in known), None))
    known_labels = [label for label in labels if label is not None]
    if len(known_labels) < len(labels) or message.images:  # no answer of ours is a picture
        return TextLabel(source="unknown_answer", trusted=False, private=True)
    return next((one for one in known_labels if not one.trusted), TextLabel(source="answer", trusted=True))


def keep_known_text(message: ChatMessage, known: Mapping[str, TextLabel]) -> ChatMessage:
    """An answer of ours as it was written: without blocks of the client that its digest says nothing about."""
    if message.role != "assistant" or message.tool_calls:
        return message
    whole, *shorter = compute_digests(message.content)
    if whole in known or not any(digest in known for digest in shorter):
        return message
    return message.model_copy(update={"content": remove_added_blocks(message.content)})


def _digest(text: str) -> str:
    composed = text if text.isascii() else unicodedata.normalize("NFC", replace_surrogates(text))
    normal = " ".join(composed.split())
    return hashlib.sha256(normal.encode()).hexdigest()
