"""`ChunkReader`: reads the objects of one streamed completion as `ModelChunk`s."""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Any

from agent.core.errors import ModelOutputError
from agent.core.models import JsonObject, Usage
from agent.core.surrogates import has_surrogates
from agent.llm.faults import build_body_error, build_foreign_error
from agent.llm.port import ModelChunk, read_choice_end
from agent.llm.repeats import cut_repeated, iter_new_calls
from agent.llm.replies import (
    find_body_error,
    get_object,
    get_provider_fields,
    list_calls,
    list_objects,
    read_message,
    read_usage,
)
from agent.llm.surrogates import SurrogateJoiner
from agent.llm.thoughts import OPENING, THOUGHTS

_PLAIN_FIELDS = frozenset({"content", "role"})
_SPLIT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal")
"""The texts of a delta that may be cut inside a character."""
_CHARS_PER_TOKEN = 4
_TOKEN_CHARS = (1.5, 10)
"""Between these average lengths, the pieces of a stream are tokens. Shorter ones are single characters, longer ones
several tokens at once; then the tokens are estimated from the characters."""
_BEGINNING = 64
"""The pieces of a reply within which a thought at its beginning shows."""
_MAX_ASIDE = 50_000
"""Pieces of other choices that are held back, so that a stream of nothing else fills no memory."""
_TOLERANCE = 0.04
"""A share of the limit by which a reply may exceed it before it is cut, because the tokens are estimated."""


class _JoinedChunk:
    """Neighbouring chunks that become one."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.counted = 0
        """How many of the texts are counted against the limit."""
        self.finish_reason: str | None = None
        self._usage: Usage | None = None

    def add(self, chunk: ModelChunk) -> None:
        """Adds a chunk without parts besides text."""
        self.texts.append(chunk.text)
        self.finish_reason = self.finish_reason if chunk.finish_reason is None else chunk.finish_reason
        self._usage = chunk.usage or self._usage

    def end(self) -> Iterator[ModelChunk]:
        """Yields the joined chunk, unless it is empty, and begins the next one."""
        text = "".join(self.texts)
        if text or self.finish_reason is not None or self._usage is not None:
            yield ModelChunk(text, finish_reason=self.finish_reason, usage=self._usage)
        self.texts, self.counted, self.finish_reason, self._usage = [], 0, None, None


class ChunkReader:
    """Reads one stream. Follows one choice, and cuts the reply at about `max_tokens`; None means no limit.

    A provider is asked for the limit too. Counting here stops one that ignores it.
    """

    def __init__(self, where: str, max_tokens: int | None = None) -> None:
        self.has_finished = False
        """Whether a finish reason came, or the reply was cut."""
        self.is_cut = False
        self._where = where
        self._limit = None if max_tokens is None else max_tokens * (1 + _TOLERANCE)
        self._index: object = None
        self._has_index = False
        self._joiners: dict[str, SurrogateJoiner] = {}
        self._has_calls = False
        self._lacks_calls = False
        """Whether the finish reason announced calls that did not come."""
        self._has_messages = False
        """Whether pieces of the reply came as messages, not as deltas."""
        self._aside: list[dict[str, Any]] = []
        """What other choices said since the followed one last spoke."""
        self._foreign: Mapping[str, Any] | None = None
        """The first object that is not a chunk."""
        self._pieces = 0
        self._chars = 0
        self._texts: list[str] = []
        self._reasonings: list[str] = []
        self._refusals: list[str] = []
        self._calls: list[JsonObject] = []
        """The pieces so far, which a message at the end may repeat."""

    @property
    def has_pieces(self) -> bool:
        """Whether anything of a reply came."""
        return self._pieces > 0

    @property
    def has_thoughts(self) -> bool:
        """Whether the reply so far has reasoning, in a field of its own or at the beginning of its text."""
        has_reasoning = any(reasoning and not reasoning.isspace() for reasoning in self._reasonings)
        return has_reasoning or has_thoughts("", "".join(self._texts[:_BEGINNING]))

    def read(self, events: Iterable[Mapping[str, Any]]) -> Iterator[ModelChunk]:
        """Yields the chunks of events that arrived together. Neighbours with nothing but text, a finish reason and
        usage become one chunk: each chunk passes ten functions on its way to the log. Empty ones are left out.

        Raises the matching error for an error of the provider in place of a chunk, after the text before it.
        """
        joined = _JoinedChunk()
        for event in events:
            text = self._read_plain_text(event)
            if text is not None:
                joined.texts.append(text)
                continue
            if self._count_joined(joined):
                break
            if (error := find_body_error(event)) is not None:
                if self.has_finished or joined.finish_reason is not None:
                    break  # the reply is whole: only its usage is missing
                yield from joined.end()
                raise build_body_error(error, self._where)
            chunk = self._read_chunk(event)
            if chunk.has_parts_besides_text:
                yield from joined.end()
                yield chunk
            else:
                joined.add(chunk)
                joined.counted = len(joined.texts)
            if self.is_cut:
                break
        self._count_joined(joined)
        if self.is_cut:
            joined.finish_reason, self.has_finished = "length", True
        yield from joined.end()

    def read_plain(self, event: Mapping[str, Any]) -> ModelChunk | None:
        """The chunk of an event with nothing but text, within the limit; None for any other, uncounted."""
        text = self._read_plain_text(event)
        if not text:
            return None
        self._pieces += 1
        self._chars += len(text)
        if self._limit is not None and self._estimate_tokens() > self._limit:
            self._pieces -= 1
            self._chars -= len(text)
            return None
        self._texts.append(text)
        return ModelChunk(text)

    def end(self, *, is_whole: bool) -> Iterator[ModelChunk]:
        """Yields what is left at the end of the stream. `is_whole` says that the stream declared itself complete: then
        a reply without a finish reason gets one.

        One reply was asked for. If the followed choice stopped without an end, or without the calls it announced, the
        others continue it: some servers number the pieces, or write the calls into a choice of their own (Copilot).

        Raises `ModelOutputError` for a stream that ended in the middle, or that holds no completion.
        """
        if self._aside and (self._lacks_calls or (not self.has_finished and self._is_continued())):
            aside, self._aside = self._aside, []
            yield from self.read({"choices": [{**choice, "index": self._index}]} for choice in aside)
        rests = {key: joiner.end() for key, joiner in self._joiners.items()}
        text, refusal = rests.get("content", ""), rests.get("refusal", "")
        reasoning = rests.get("reasoning_content") or rests.get("reasoning") or ""
        if text or refusal or reasoning:
            yield ModelChunk(text, reasoning, refusal=refusal)
        if self.has_finished:
            return
        if self._foreign is not None and not self.has_pieces:
            raise build_foreign_error(self._where, self._foreign)
        if not is_whole:
            raise ModelOutputError(f"{self._where} ended its stream in mid-reply", agent_id="models")
        self.has_finished = True
        yield ModelChunk(finish_reason="tool_calls" if self._has_calls else "stop")

    def _is_continued(self) -> bool:
        """Whether the other choices are pieces of the same reply: calls, or texts that are numbered up to the end. A
        second piece with the same index would be of another reply.
        """
        indexes = [str(index) for index in (self._index, *(one.get("index") for one in self._aside))]
        is_numbered = len({*indexes}) == len(indexes) and bool(self._aside[-1].get("finish_reason"))
        return is_numbered or any(list_calls(_get_delta(one)) for one in self._aside)

    def _read_plain_text(self, event: Mapping[str, Any]) -> str | None:
        """The text of a chunk that holds nothing else, as most do; None for other chunks."""
        try:
            (choice,) = event["choices"]
            delta = choice["delta"]
            text = delta["content"]
            index = choice.get("index")
            if self._has_index and index != self._index:
                return None
            if choice.get("finish_reason") or choice.get("error"):
                return None
        except (LookupError, TypeError, ValueError):
            return None
        if event.get("usage") or event.get("error") or type(text) is not str:
            return None
        if self._joiners or self._aside or not (text.isascii() or not has_surrogates(text)):
            return None
        if len(delta) > 1 and any(value for key, value in delta.items() if key not in _PLAIN_FIELDS):
            return None
        if text and not self._has_index and index is not None:  # as in `_select_choice`
            self._index, self._has_index = index, True
        return text

    def _read_chunk(self, event: Mapping[str, Any]) -> ModelChunk:
        choice = self._select_choice(event)
        delta = _get_delta(choice)
        if _is_message(choice) and _has_content(choice):
            delta = self._skip_repeated(delta)
        chunk = read_chunk(event, choice, self._join_halves(delta))
        if chunk.finish_reason == "error":
            raise ModelOutputError(f"{self._where} ended its reply with an unspecified error", agent_id="models")
        self.has_finished = self.has_finished or chunk.finish_reason is not None
        if chunk.tool_calls:
            self._has_calls = True
            self._calls += chunk.tool_calls
            functions = [get_object(call.get("function")) for call in chunk.tool_calls]
            self._lacks_calls = False
            # Also calls without arguments, and parts without text: a stream of nothing else would never end.
            self._count(sum(len(str(one.get("arguments") or "")) or _CHARS_PER_TOKEN for one in functions))
        elif chunk.finish_reason == "tool_calls":
            self._lacks_calls = not self._has_calls
        if chunk.reasoning or chunk.refusal:
            self._reasonings.append(chunk.reasoning)
            self._refusals.append(chunk.refusal)
            self._count(len(chunk.reasoning) + len(chunk.refusal))
        elif chunk.provider_fields and not (chunk.text or chunk.tool_calls):
            self._count(_CHARS_PER_TOKEN)
        return chunk._replace(text=self._count_text(chunk.text)) if chunk.text else chunk

    def _select_choice(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The choice to read: the one of the index that first said something. An end without content counts for
        it too, unless it is the end of another choice: some servers write all ends with the index 0.
        """
        listed = event.get("choices")
        choices = list_objects([listed] if isinstance(listed, dict) else listed)
        if not choices:
            if self._foreign is None and event and event.get("choices") is None and event.get("usage") is None:
                self._foreign = event
            return {}
        if self._has_index:
            choice = next((one for one in choices if _is_same_index(one.get("index"), self._index)), {})
        else:
            first = next((one for one in choices if not one.get("index")), choices[0])
            speaking = first if _has_content(first) else next(filter(_has_content, choices), None)
            if speaking is None:
                return first
            choice = speaking
            self._index, self._has_index = choice.get("index"), True
        if self._aside and _has_content(choice):
            self._aside.clear()
        is_other_end = not choice and bool(self._aside)
        others = [one for one in choices if one is not choice and (is_other_end or _has_content(one))]
        if len(self._aside) < _MAX_ASIDE:
            self._aside += others
        if choice or others:
            return choice
        return {"finish_reason": choices[0].get("finish_reason")}

    def _skip_repeated(self, message: dict[str, Any]) -> dict[str, Any]:
        """The part of a message that the deltas before it do not hold: some servers end a stream with the whole."""
        if not self.has_pieces or self._has_messages:
            self._has_messages = True
            return message
        content = read_message(message)
        key = "reasoning_content" if message.get("reasoning_content") else "reasoning"
        return {
            "content": cut_repeated(content.text, self._texts),
            key: cut_repeated(content.reasoning, self._reasonings),
            "refusal": cut_repeated(content.refusal, self._refusals),
            "tool_calls": list(iter_new_calls(list_calls(message), self._calls)),
        }

    def _join_halves(self, delta: dict[str, Any]) -> dict[str, Any]:
        """The delta with whole characters, and keeps the half of one that its end may hold."""
        joined = delta
        for key in _SPLIT_FIELDS:
            text = delta.get(key)
            if not isinstance(text, str) or not text:
                continue
            joiner = self._joiners.get(key)
            if joiner is None:
                if text.isascii() or not has_surrogates(text):
                    continue
                joiner = self._joiners[key] = SurrogateJoiner()
            joined = joined if joined is not delta else dict(delta)
            joined[key] = joiner.feed(text)
            if not joiner.is_waiting:
                del self._joiners[key]
        return joined

    def _count_joined(self, joined: _JoinedChunk) -> bool:
        """Counts the texts that were joined since the last time, together; one by one where the limit is reached.

        Returns whether the reply is cut."""
        texts = joined.texts[joined.counted :] if joined.counted else joined.texts
        if not texts or self.is_cut:
            return self.is_cut
        pieces, chars = self._pieces, self._chars
        self._pieces, self._chars = pieces + len(texts) - texts.count(""), chars + sum(map(len, texts))
        if self._limit is not None and self._estimate_tokens() > self._limit:
            self._pieces, self._chars = pieces, chars
            joined.texts[joined.counted :] = self._count_until_cut(texts)
        else:
            self._texts += texts
        joined.counted = len(joined.texts)
        return self.is_cut

    def _count_until_cut(self, texts: Iterable[str]) -> Iterator[str]:
        """Yields the texts, up to the one that is cut."""
        for text in texts:
            if text and not self.is_cut:
                yield self._count_text(text)

    def _count_text(self, text: str) -> str:
        """Counts a piece of text. Returns it, or its beginning if it exceeds the limit."""
        self._pieces += 1
        self._chars += len(text)
        self._texts.append(text)
        if self._limit is None or (excess := self._estimate_tokens() - self._limit) <= 0:
            return text
        self.is_cut = True
        return text[: max(0, len(text) - ceil(excess * _CHARS_PER_TOKEN))]

    def _count(self, chars: int) -> None:
        self._pieces += 1
        self._chars += chars
        self.is_cut = self.is_cut or (self._limit is not None and self._estimate_tokens() > self._limit)

    def _estimate_tokens(self) -> float:
        shortest, longest = _TOKEN_CHARS
        if shortest * self._pieces <= self._chars <= longest * self._pieces:
            return self._pieces
        return self._chars / _CHARS_PER_TOKEN


def has_thoughts(reasoning: str, text: str) -> bool:
    """Whether a reply has thoughts, in its reasoning or before its text. Templates that switch them off leave an empty
    thought (Qwen 3), which is none."""
    if reasoning and not reasoning.isspace():
        return True
    beginning = text.lstrip()
    opening = OPENING.match(beginning)
    if opening is None:
        return False
    thought = beginning[opening.end() :].lstrip().lower()
    closings = THOUGHTS[opening[0].lower()]
    return bool(thought) and not any(thought.startswith(one) or one.startswith(thought) for one in closings)


def read_chunk(event: Mapping[str, Any], choice: Mapping[str, Any], delta: JsonObject) -> ModelChunk:
    """Reads one chunk of a streamed completion: one of its choices, and that choice's delta."""
    reported = event.get("usage") or choice.get("usage") or get_object(event.get("x_groq")).get("usage")
    usage = read_usage(reported, event.get("timings")) if reported else None
    finish_reason = read_choice_end(choice)
    if not delta:  # the end of the text, or the usage behind it
        return ModelChunk(finish_reason=finish_reason, usage=usage)
    content = read_message(delta)
    calls = tuple(list_calls(delta))
    if "message" in choice and choice.get("delta") is None:  # a whole reply, which needs no finish reason
        finish_reason = finish_reason or ("tool_calls" if calls else "stop")
    return ModelChunk(
        text=content.text,
        reasoning=content.reasoning,
        finish_reason=finish_reason,
        usage=usage,
        tool_calls=calls,
        provider_fields=get_provider_fields(delta),
        refusal=content.refusal,
    )


def _get_delta(choice: Mapping[str, Any]) -> dict[str, Any]:
    """The text and calls that a choice adds. A server that cannot stream sends the whole message in its place, one that
    knows only plain completions a text."""
    delta = choice.get("delta") or choice.get("message")
    text = delta or choice.get("text")
    return {"content": text} if isinstance(text, str) and text else get_object(delta)


def _is_message(choice: Mapping[str, Any]) -> bool:
    """Whether `_get_delta` takes the choice's message."""
    return bool(choice.get("message")) and not choice.get("delta")


def _is_same_index(index: object, followed: object) -> bool:
    """Whether two indexes are of one choice: some servers leave it out now and then, or write it as text."""
    return index is None or followed is None or str(index) == str(followed)


def _has_content(choice: Mapping[str, Any]) -> bool:
    return any(value for key, value in _get_delta(choice).items() if key != "role")
