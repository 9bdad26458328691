"""Compares literals with the words of a person as values: does this address, amount, date or phrase stand there?

Unlike `agent.text.values`, which checks what an answer claims, nothing is rounded and nothing follows from anything:
"50" is in "$50" and "50.00", and is not in "500" or "50.4", as "500" is not in "12 500". Case and characters that look
alike make no difference in prose; they do in addresses, paths and ids (`agent.text.spelling`).
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from agent.text.codes import CodeMention, find_codes
from agent.text.numbers import NumberMention
from agent.text.pieces import split_pieces
from agent.text.question_parts import is_question
from agent.text.spelling import is_address, normalise_spelling, space_words
from agent.text.stated_values import Quantity, StatedValues, is_unspaced, iter_digit_groups, prepare
from agent.text.stop_words import NEGATION
from agent.text.terms import extract_terms, has_content_words, map_query_terms
from agent.text.values import find_values

if TYPE_CHECKING:
    from agent.text.replies import UserReply

MAX_CHARS: Final = 50_000
"""Characters of a person's texts that are compared, the newest last. Of longer texts the end is taken."""
MAX_VALUE_CHARS: Final = 8_000
"""A longer literal is not compared: nobody typed it."""
MAX_PARTS: Final = 200
MAX_SENTENCE_CHARS: Final = 1_000
OPENING_CHARS: Final = 100
"""Characters before a sentence in which its opening is looked for, and the end of the sentence before it."""
MIN_CODE_CHARS: Final = 5
"""Letters and digits of a code that is found with other separators too: `SE45 5000` is `SE455000`."""
MIN_SHARED: Final = 0.6
"""Share of a sentence's content words in a restatement of it."""
_OPENING: Final = frozenset("\"'`([{<:;,=*_|>~")
"""Characters that may stand right before a value: quotes, brackets, and marks of lists and Markdown."""
_CLOSING: Final = frozenset("\"'`)]}>;,*_|<~")
_SIGILS: Final = frozenset("#@")
"""What marks a name as one of a channel or a person, right before it: `#backend`, `@octocat`."""
_STOPS: Final = frozenset(".:?!")
"""Characters that end a value only where a space or the text's end follows: `bo@example.org.` but not `.org.evil`."""
_SEPARATORS: Final = re.compile(r"[\n,;<>()\[\]{}\"|]+")
SCHEME: Final = re.compile(r"(?:https?://|mailto:|tel:)")
_BARE_HOST: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/\S*)?")
_CODE: Final = re.compile(r"[\w+ -]+")
_COMPOUND: Final = re.compile(r"(?<![^\s\"'`(<\[*])[\w.-]+(?:/[\w.-]+)+(?:#\d+)?(?![\w/#@:?&=%-])")
"""An identifier or a path of several parts, but not a web address: `acme/api`, `acme/api#42`."""
MAX_COMPOUNDS: Final = 100
_ID: Final = re.compile(r"[^\W_]+(?:[._-][^\W_]+)+")
_ID_WORD: Final = re.compile(r"[^\W_]+")
_SPOKEN_WORDS: Final = re.compile(
    r"(?<![^\s\"'`(\[])[^\W_]+(?:[ \t\u00a0]+[^\W_]+)*(?![^\s.,;:!?\"'`)\]])(?![.,;:!?]\S)"
)
"""Words with spaces between, none of them a part of an address or of a longer name."""
_VERB: Final = re.compile(r"[A-Za-z]{3,}(?= )")
MAX_ID_WORDS: Final = 6
_GROUPED_CODE: Final = re.compile(r"\b[a-z]{2}\d\d[ -]")
NEAR_CHARS: Final = 6
"""Characters on either side of a place within which a number that goes on there has a digit."""
_SENTENCE_END: Final = re.compile(r"[.!?:;\n][\"')\]]*\s*\Z")
_SPEAKER: Final = frozenset({"user"})
"""Models write what users say of themselves in the third person."""


class OwnWords:
    """The texts of one person, or of several people who are trusted alike, and their replies to questions."""

    def __init__(self, *texts: str, replies: Sequence["UserReply"] = (), zone: tzinfo | None = None) -> None:
        """`zone` is where the times of day in the texts are meant."""
        self._texts = _limit(texts)
        self._replies = tuple(replies)
        self._zone = zone

    def hold(self, value: JsonValue, label: str = "") -> bool:
        """Whether the texts contain a value. Of a list or an object every part must, and every key.

        A boolean never does; null and an empty text, which say nothing, always do. `label` is the name of the input
        that takes the value, and behind a line break its description: they may say in which unit it counts.
        """
        if value is None:
            return True
        if isinstance(value, bool):
            return False
        if isinstance(value, int | float):
            return self._stated.hold_number(_to_decimal(value), label=label) or self._is_given_in_reply(str(value))
        if isinstance(value, str):
            return self._hold_text(value, label)
        if isinstance(value, list):
            return all(self.hold(item, label) for item in value)
        return all(self.hold(key) and self.hold(item, key) for key, item in value.items())

    def hold_quotation(self, text: str) -> bool:
        """Whether the texts contain a text as it stands. Unlike `hold`, it takes no list of parts that are there: put
        together in another way, they may say something else."""
        phrase = _strip_end(normalise_spelling(text).strip()).strip()
        return bool(phrase.strip(".!?")) and self._hold_phrase(phrase)

    def hold_name(self, name: str) -> bool:
        """Whether the texts contain a name in some spelling, in whole words: `support-team` is `Support Team`."""
        if is_address(name):
            return self._hold_phrase(normalise_spelling(name))
        return OwnWords(*map(space_words, self._texts))._hold_phrase(normalise_spelling(space_words(name)))

    def list_joined(self, inputs: Mapping[str, JsonValue]) -> frozenset[str]:
        """The names of the inputs that hold an identifier of the texts in its parts, all of them and each once: the
        owner `acme` and the repository `api` of `acme/api`. A part by itself may be another thing's.

        `inputs` are in the order in which the tool declares them, and the parts must be so too."""
        names: dict[str, list[str]] = {}
        for name, value in inputs.items():
            if isinstance(value, str | int) and not isinstance(value, bool):
                names.setdefault(normalise_spelling(str(value)), []).append(name)
        joined: set[str] = set()
        for parts in self._compounds:
            inputs_of_parts = [names.get(part, []) for part in parts]
            holders = [one[0] for one in inputs_of_parts if len(one) == 1]
            if len(holders) == len(set(parts)) == len(parts) and holders == [
                name for name in inputs if name in holders
            ]:
                joined |= {*holders}
        return frozenset(joined)

    def hold_id(self, value: str) -> bool:
        """Whether the words of an id of several stand side by side with nothing but spaces between, in whatever order:
        `light.kitchen` of "the kitchen light". With a digit, which means another thing in another place, in the same
        order. For what names a thing only, not for an address."""
        words = _ID_WORD.findall(value.casefold())
        has_letters = any(map(str.isalpha, value))
        if not 1 < len(words) <= MAX_ID_WORDS or not has_letters or not _ID.fullmatch(value):
            return False
        has_digit = any(map(str.isdigit, value))
        spoken = (match[0].split() for text in self._texts for match in _SPOKEN_WORDS.finditer(text.casefold()))
        windows = (one[at : at + len(words)] for one in spoken for at in range(len(one)))
        return any(one == words or (not has_digit and sorted(one) == sorted(words)) for one in windows)

    def choose(self, value: JsonValue, choices: Sequence[JsonValue]) -> bool:
        """Whether the texts command one of the choices, and name no other: `closed` of "close it". Nothing but a
        participle is that certain: "the administrators know" makes nobody `administrator`."""
        if not isinstance(value, str) or value.casefold() not in self._commanded:
            return False
        others = [one for one in choices if isinstance(one, str) and one != value]
        return not any(self.hold(one) or one.casefold() in self._commanded for one in others)

    @cached_property
    def _commanded(self) -> frozenset[str]:
        """The participles of the verbs that begin a sentence without a "not", or what stands there behind a colon."""
        clauses = (part for one in self._sentences if not NEGATION.search(one) for part in one.split(": "))
        verbs = [match[0].casefold() for part in clauses if (match := _VERB.match(part)) is not None]
        return frozenset(form for verb in verbs for form in (f"{verb}d", f"{verb}ed") if form.endswith("ed"))

    def state(self, text: str) -> bool:
        """Whether a text says nothing that is not in the texts: each of its values and content words is there.

        Weaker than `hold`: the words may have another order and leave out a "not". So it fits a comparison, and neither
        what is stored as the person's own nor addresses and names.
        """
        if self._hold_text(text):
            return True
        if len(text) > MAX_VALUE_CHARS or not has_content_words(text) or not self._state_values(text):
            return False
        words = _collect_content(text)
        return bool(words) and words <= self.terms.union(*(reply.terms for reply in self._replies))

    def find_restated(self, text: str, opening: re.Pattern[str] | None = None) -> str | None:
        """The sentence of the person that holds each value of a text and most of its content words; None if there is
        none. A question counts only if it has the `opening`: "Can you remember that I am allergic?"."""
        if len(text) > MAX_VALUE_CHARS:
            return None
        words = _collect_content(text)
        best, most = None, MIN_SHARED
        for sentence in self._sentences if words else ():
            if is_question(sentence) and (opening is None or opening.search(sentence) is None):
                continue
            own = OwnWords(sentence)
            shared = len(words & own.terms) / len(words)
            if shared >= most and own._state_values(text):
                best, most = sentence, shared
        return best

    def find_statement(self, text: str, opening: re.Pattern[str]) -> str | None:
        """The person's own words for a text: the text, if it is whole sentences of theirs, or the sentence that it
        restates or is a part of, whose other words may turn it round: "not allergic". None if it says anything else.

        `opening` matches what may stand before a sentence, such as "remember that".
        """
        own_text, phrase = self._normalised, normalise_spelling(text).strip().rstrip(".!?")
        start = own_text.find(phrase) if phrase else -1
        while start >= 0:
            end = start + len(phrase)
            is_end = end == len(own_text) or own_text[end] in ".!?\n"
            if is_end and _begins_statement(own_text, start, opening):
                return text
            start = own_text.find(phrase, start + 1)
        return self.find_restated(text, opening)

    def _hold_text(self, value: str, label: str = "") -> bool:
        text = normalise_spelling(value).strip()
        if not text:
            return True
        text = _strip_end(text).strip("\"'`").strip() or text
        if not text.strip(".!?"):
            return text in self._normalised.split()
        if len(text) > MAX_VALUE_CHARS:
            return False
        if self._hold_phrase(text) or self._hold_address(text) or self._hold_code(text):
            return True
        if self._stated.hold(value, label) or self._is_given_in_reply(value):
            return True
        parts = [part.strip() for part in _SEPARATORS.split(text) if part.strip()]
        return 1 < len(parts) <= MAX_PARTS and all(self._hold_text(part, label) for part in parts)

    def _is_given_in_reply(self, value: str) -> bool:
        return any(reply.gives(value) for reply in self._replies)

    def _hold_phrase(self, text: str) -> bool:
        own_text, start = self._normalised, 0
        while (at := own_text.find(text, start)) >= 0:
            if self._is_whole(at, at + len(text)):
                return True
            start = at + 1
        return False

    def _is_whole(self, start: int, end: int) -> bool:
        """Whether a part of the texts is not a part of a longer word, number, address or path."""
        own_text = self._normalised
        is_whole = _begins_value(own_text, start) and _ends_value(own_text, end)
        return is_whole and not self._is_in_number(start) and not self._is_in_number(end)

    def _is_in_number(self, at: int) -> bool:
        """Whether a number or a code goes on at a place: `500` begins within `12 500`."""
        if not any(map(str.isdigit, self._normalised[max(at - NEAR_CHARS, 0) : at + NEAR_CHARS])):
            return False
        place = bisect_right(self._numeric_starts, at) - 1
        return any(start < at < end for start, end in self._numeric_spans[max(place - 1, 0) : place + 1])

    def _hold_address(self, text: str) -> bool:
        """Whether a web, mail or phone address stands there with another scheme or without one."""
        bare = SCHEME.sub("", text, count=1) if SCHEME.match(text) else text
        bare = bare.removesuffix("/")
        if bare == text or not bare or " " in bare:
            return _BARE_HOST.fullmatch(text) is not None and any(
                self._hold_phrase(f"{scheme}{text}{end}") for scheme in ("https://", "http://") for end in ("", "/")
            )
        forms = (f"{scheme}{bare}{end}" for scheme in ("", "https://", "http://", "mailto:") for end in ("", "/"))
        return any(self._hold_phrase(form) for form in forms)

    def _hold_code(self, text: str) -> bool:
        letters = [char for char in text if char.isalnum()]
        if len(letters) < MIN_CODE_CHARS or not _CODE.fullmatch(text) or not any(char.isdigit() for char in letters):
            return False
        if sum(char.isdigit() for char in letters) * 2 < len(letters):  # a sentence with a number in it
            return False
        plus = r"\+" if text.startswith("+") else ""
        pattern = plus + "[ -]?".join(map(re.escape, letters))
        return any(self._is_whole(*match.span()) for match in re.finditer(pattern, self._normalised))

    def _state_values(self, text: str) -> bool:
        plain = prepare(text)
        if not all(self._hold_text(code.text) for code in find_codes(plain)):
            return False
        return all(
            self._stated.hold_mention(mention) or self._is_given_in_reply(plain[mention.start : mention.end])
            for mention in find_values(plain)
            if isinstance(mention, Quantity)
        )

    @cached_property
    def _compounds(self) -> list[list[str]]:
        # Without a letter it is a date, a fraction or the like: "open 24/7".
        named = (
            match for text in self._texts for match in _COMPOUND.finditer(text) if re.search(r"[^\W\d_]", match[0])
        )
        matches = islice(named, MAX_COMPOUNDS)
        return [list(map(normalise_spelling, re.split("[/#]", match[0].rstrip(".")))) for match in matches]

    @cached_property
    def _stated(self) -> StatedValues:
        return StatedValues(self._texts, zone=self._zone)

    @cached_property
    def _normalised(self) -> str:
        return "\n".join(map(normalise_spelling, self._texts))

    @cached_property
    def _numeric_spans(self) -> list[tuple[int, int]]:
        """The places of numbers and codes in the normalised texts, without the units behind them."""
        # As `_normalised`, of the same length, with the ends of lines: no number goes on behind one.
        text = "\n".join("\n".join(filter(None, map(normalise_spelling, one.splitlines()))) for one in self._texts)
        mentions = [one for one in find_values(text) if isinstance(one, NumberMention | CodeMention)]
        if _GROUPED_CODE.search(text):  # such codes are known by their capitals
            mentions += find_codes("".join(char.upper() if len(char.upper()) == 1 else char for char in text))
        spans = [(one.start, one.end) for one in mentions]
        # From the first letter or digit, without a bullet, to the last digit, without a unit.
        cores = [(start, re.search(r"[^\W_](?:.*\d)?", text[start:end], re.DOTALL)) for start, end in spans]
        spans = [(start + core.start(), start + core.end()) for start, core in cores if core is not None]
        return sorted({*spans, *iter_digit_groups(text)})

    @cached_property
    def _numeric_starts(self) -> list[int]:
        return [start for start, _ in self._numeric_spans]

    @cached_property
    def _sentences(self) -> list[str]:
        whole = (*self._texts, *(reply.text for reply in self._replies))
        texts = (text[piece.start : piece.end] for text in whole for piece in split_pieces(text))
        return [sentence for sentence in texts if len(sentence) <= MAX_SENTENCE_CHARS]

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems of the words of the texts."""
        return frozenset(term for text in self._texts for term in extract_terms(prepare(text)))


def _limit(texts: Iterable[str]) -> tuple[str, ...]:
    """The last texts that fit `MAX_CHARS`; the oldest of them may lose its beginning."""
    left, newest = MAX_CHARS, list[str]()
    for text in reversed(tuple(texts)):
        if left <= 0:
            break
        newest.append(text[-left:])
        left -= len(newest[-1])
    return tuple(reversed(newest))


def _begins_statement(text: str, start: int, opening: re.Pattern[str]) -> bool:
    """Whether a sentence begins at a place, or behind an opening of one."""
    first = max(start - OPENING_CHARS, 0)
    before = text[first:start]
    if not before or _SENTENCE_END.search(before) is not None:
        return True
    *ended, words = re.split(r"[.!?;\n]\s*", before)
    return (bool(ended) or first == 0) and opening.fullmatch(words.strip()) is not None


def _begins_value(text: str, start: int) -> bool:
    before = text[start - 1 : start]
    if before in _SIGILS and start > 1:  # not within an address: `bo@example.org`
        before = text[start - 2]
        return text[start].isalpha() and (before.isspace() or before in _OPENING)
    if not before or before in _SIGILS or before.isspace() or before in _OPENING:
        return not _is_number_part(text, start - 1)
    if before.isalpha() and (is_unspaced(before) or is_unspaced(text[start])):
        return True
    # The sign of a currency belongs to the amount, and a sign of punctuation of another script to nothing.
    return unicodedata.category(before) in ("Sc", "Po", "Ps", "Pi", "Pf", "Pe") and before not in "@#%&/\\.*"


def _ends_value(text: str, end: int) -> bool:
    after = text[end : end + 1]
    if not after or after.isspace() or after in _CLOSING:
        return not (after in (",", ";") and text[end + 1 : end + 2].isdigit() and text[end - 1].isdigit())
    if after in _STOPS:
        following = text[end + 1 : end + 2]
        return not following or following.isspace() or following in _CLOSING
    if after.isalpha() and (is_unspaced(after) or is_unspaced(text[end - 1])):
        return True
    return unicodedata.category(after) in ("Sc", "Po", "Pe", "Pf", "Pi") and after not in "@#%&/\\.:*"


def _is_number_part(text: str, at: int) -> bool:
    """Whether the comma at `at` stands between two digits."""
    return at > 0 and text[at] == "," and text[at - 1].isdigit() and text[at + 1 : at + 2].isdigit()


def _to_decimal(value: float) -> Decimal | None:
    try:
        number = Decimal(repr(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _collect_content(text: str) -> frozenset[str]:
    """The stems of a text's content words, without its numbers and dates, which are compared as values."""
    plain = prepare(text)
    for mention in reversed(find_values(plain)):
        if isinstance(mention, Quantity):
            plain = plain[: mention.start] + " " * (mention.end - mention.start) + plain[mention.end :]
    pieces = (plain[piece.start : piece.end] for piece in split_pieces(plain))
    # By piece, because `map_query_terms` keeps the most frequent terms only.
    return frozenset(term for piece in pieces if has_content_words(piece) for term in map_query_terms(piece)) - _SPEAKER


def _strip_end(text: str) -> str:
    """A text without the mark that ends its sentence. Behind a separator or a space, a period ends none: `reports/..`
    is another folder."""
    sentence = text.rstrip(".!?")
    is_path = "." in text[len(sentence) :] and (not sentence or sentence[-1] in "/\\ ")
    return text if is_path else sentence
