"""The injection classifier: three linear models from a text file, their thresholds, and the segments they score."""

# ruff: noqa: RUF001 - punctuation and letters of many languages are meant

import json
import math
import re
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from agent.policy.guardrails.lexicon import CONCEPTS_BY_WORD
from agent.policy.guardrails.text_features import SIZE, Floats, HashedText, Ints, StackedWeights, Weights

Shape = Literal["chat", "mail", "data"]
"""`chat`: a person addresses the assistant. `mail` and `data`: carriers, in which nobody should."""

MAX_WHOLE_CHARS = 4_000
"""Longer texts are judged in windows, so that a few lines of attack in a long page are not averaged away."""
WINDOW, STEP = 2_000, 1_000

_MAIL_HEADER = re.compile(
    r"(?:^|\|)[ \t>\"']{0,9}(subject|from|to|cc|email_from|received date|sent|betreff|von|an|objet|asunto"
    r"|oggetto)[ \t]?:",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_SUBJECT_HEADERS = {"subject", "betreff", "objet", "asunto", "oggetto", "email_from"}
_GREETING = re.compile(
    r"^[ \t>\"']{0,9}(?:hi|hello|dear|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|bonjour|hola|ciao|hej|kære)"
    r"(?: [^\s,!]{1,30}){0,3} ?[,!]?[ \t]*(?:$|,)",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_GREETING_BY_NAME = re.compile(
    r"(?:[^\n]{0,200}\n)?[ \t>\"']{0,9}(?:Hi|Hello|Dear|Hey|Hallo|Liebe[rs]?|Bonjour|Hola|Ciao|Hej) ([A-Z]\w{1,20}),"
)
"""A greeting by name in the first or second line, which nobody uses for an assistant except by one of its names."""
MIN_MAIL_CHARS = 100
_FOOTER = re.compile(
    r"\b(?:unsubscribe|sent from my|kind regards|best regards|view (?:this email )?in (?:your )?browser|(?:reply"
    r"|respond) to this "
    r"(?:e-?mail|message)|if you have any (?:further )?questions|the \w{1,30} team|mit freundlichen grüßen"
    r"|cordialement)\b",
    re.IGNORECASE,
)  # fmt: skip
_KEY = re.compile(r"['\"][\w -]{1,40}['\"]\s{0,3}:\s{0,3}[\[{'\"\d-]")
_QUESTION_KEY = re.compile(
    r"['\"](?:q|question|faq|query|frage|fråga|pregunta|domanda)['\"]\s{0,3}:\s{0,3}['\"]", re.IGNORECASE
)
_OPENS_DATA = re.compile(r"[\s'\"]{0,9}[\[{<]")
_BOUNDARY = re.compile(
    r"(?=[\s'\"*)\]|\\<A-Z]|(?<=[。！？；]))(?:"  # what any border begins with, so that most characters fail at once
    r"(?<=[.!?;:…])[\s'\"*)\]]+"
    r"|(?<=[。！？；])"
    r"|[\n\r|]\s*"
    r"|\\[nr]"
    r"|\\?['\"]\s{0,9}[,}\]:]\s{0,9}[\]}\[{,]{0,9}\s{0,9}\\?['\"]?"
    r"|<[^<>]{1,120}>"
    r"|(?<=[a-z][.!?])(?=[A-Z]))"
)  # fmt: skip
_TWO_WORDS = re.compile(r"\w[^\w]+\w|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4}")


def classify_shape(text: str) -> Shape:
    """The kind of text by its outer shape."""
    head = text[:4_000]
    if _OPENS_DATA.match(head) and len(_KEY.findall(head)) >= 1:
        return "data"
    heads = {match[1].lower() for match in _MAIL_HEADER.finditer(head)}
    if heads & _SUBJECT_HEADERS or len(heads) > 1 or (_GREETING.search(head) and _FOOTER.search(text)):
        return "mail"
    named = _GREETING_BY_NAME.match(head)
    if named is not None and len(text) > MIN_MAIL_CHARS and named[1].lower() not in CONCEPTS_BY_WORD:
        return "mail"
    return "chat"


def split_segments(text: str) -> NDArray[np.int64]:
    """The start and end of each sentence, line, cell or quoted value with at least two words."""
    spans: list[tuple[int, int]] = []
    at = 0
    for border in _BOUNDARY.finditer(text):
        spans.append((at, border.start()))
        at = border.end()
    spans.append((at, len(text)))
    segments = [span for span in spans if span[1] - span[0] >= 6 and _TWO_WORDS.search(text, *span)]
    return np.array(segments, np.int64).reshape(-1, 2)


def select_demands(text: str, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The segments that may ask something of the assistant.

    Questions under a key for questions, as in an FAQ, are there to be answered and left out.
    """
    if not _QUESTION_KEY.search(text):
        return parts
    keyed = {match.end() for match in _QUESTION_KEY.finditer(text)}
    is_demand = [start not in keyed or text[end - 1] != "?" for start, end in parts.tolist()]
    return np.compress(is_demand, parts, axis=0)


def build_windows(text: str, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The spans in which attacks are searched: the whole text, each sentence, each pair of sentences.

    A long text has overlapping windows instead of the whole.
    """
    if len(text) <= MAX_WHOLE_CHARS:
        whole = [(0, len(text))]
    else:
        whole = [(at, min(at + WINDOW, len(text))) for at in range(0, max(len(text) - STEP, 1), STEP)]
    spans = [np.array(whole, np.int64).reshape(-1, 2)]
    if len(parts) > 1:
        spans += [parts, np.column_stack([parts[:-1, 0], parts[1:, 1]])]
    return np.concatenate(spans)


WEIGHTS: Final = Path(__file__).with_name("weights.json")
FORMAT: Final = 2
WEIGHT_LEVELS: Final = 127
"""Weights are stored as integers from -127 to 127 times a scale: less than 500 kB, and a readable diff."""
WEIGHTS_PER_LINE: Final = 64
_MODEL_NAMES: Final = ("attack", "request", "addressed")
"""In the order of the file."""
_WEIGHT_LIST: Final = re.compile(r'"weights": *\[([^\]]*)\]')
MIN_ORDER_WORDS: Final = 4
"""Words of the shortest order, punctuation included."""


@dataclass(frozen=True)
class InjectionModel:
    """The result of training."""

    attack: Weights
    """Is this part of a text an attack on the assistant?"""
    request: Weights
    """Is this sentence a request to an assistant?"""
    addressed: Weights
    """Is this part of a text an order to a machine that reads it?"""
    thresholds: "Thresholds"

    @cached_property
    def attack_and_addressed(self) -> StackedWeights:
        """The models that read every span."""
        return StackedWeights.stack(self.attack, self.addressed)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The scores above which the models report a text.

    `*_carried` apply to texts from outside: these vary more, and nobody legitimately orders a machine about in them.
    """

    attack: float
    attack_carried: float
    request: float
    addressed: float
    addressed_carried: float


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The most suspicious part of a text."""

    kind: str
    """`attack`; `addressed`: an order to any machine that reads the text; `request`: a request in a text in which
    nobody should make one."""
    start: int
    end: int
    probability: float
    """0.5 at the threshold; not calibrated beyond it."""


def is_carrier(form: Shape) -> bool:
    """Whether a text of this shape carries content from somebody else."""
    return form != "chat"


def find_suspicions(text: str, model: InjectionModel, *, carrier: bool | None = None) -> list[Suspicion]:
    """The most suspicious part for each model, most suspicious first.

    `carrier` says whether the text comes from outside; None decides by its shape.
    """
    if not text.strip():
        return []
    hashed = HashedText(text)
    parts = split_segments(text)
    spans = build_windows(text, parts)
    from_outside = is_carrier(classify_shape(text)) if carrier is None else carrier
    attack, addressed = (
        (model.thresholds.attack_carried, model.thresholds.addressed_carried)
        if from_outside
        else (model.thresholds.attack, model.thresholds.addressed)
    )
    attack_scores, order_scores = hashed.score(model.attack_and_addressed, spans)
    order_spans = select_order_spans(hashed, spans, parts)
    attack_spans = order_spans if from_outside else np.arange(len(spans))
    if not from_outside and '"' in text:
        mention = find_quoted_spans(text, spans)
        order_spans, attack_spans = order_spans[~mention[order_spans]], attack_spans[~mention[attack_spans]]
    suspicions = [
        _pick_highest_score(kind, scores[where], threshold, spans[where])
        for kind, scores, threshold, where in (
            ("attack", attack_scores, attack, attack_spans),
            ("addressed", order_scores, addressed, order_spans),
        )
        if len(where)
    ]
    demands = select_demands(text, parts) if from_outside else parts[:0]
    if len(demands):
        scores = hashed.score(model.request, demands)
        suspicions.append(_pick_highest_score("request", scores, model.thresholds.request, demands))
    return sorted(suspicions, key=lambda suspicion: -suspicion.probability)


def select_order_spans(hashed: HashedText, spans: Ints, parts: Ints) -> Ints:
    """The spans in which orders to a machine are searched: sentences, and pairs of sentences.

    A whole page covers too many topics, and a heading of three words too few.
    """
    if len(spans) == 1:
        return np.zeros(1, np.int64)
    small = np.arange(len(spans) + 1 - 2 * len(parts) if len(parts) > 1 else 0, len(spans), dtype=np.int64)
    first, last = hashed.starts.searchsorted(spans[small]).T
    long_enough: Ints = small[last - first >= MIN_ORDER_WORDS]
    return long_enough if len(long_enough) else small


def find_quoted_spans(text: str, spans: Ints) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which spans lie within quotation marks: a request to translate a sentence does not say it.

    The words around them are still classified with the whole text.
    """
    marks = np.array([match.start() for match in re.finditer('"', text)], np.int64)
    before = np.searchsorted(marks, spans[:, 0])
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        (before % 2 == 1) & (np.searchsorted(marks, spans[:, 1]) == before) & (before < len(marks))
    )
    return inside


def _pick_highest_score(kind: str, scores: Floats, threshold: float, spans: Ints) -> Suspicion:
    at = scores.argmax()
    start, end = spans[at].tolist()
    above = float(scores[at]) - threshold
    return Suspicion(kind, start, end, 1 / (1 + math.exp(-max(min(above, 50), -50))))


def dump_model(model: InjectionModel) -> str:
    """The model as JSON, in lines of 64 weights."""
    above = json.dumps({name: round(value, 4) for name, value in asdict(model.thresholds).items()})
    parts = [f'"format": {FORMAT}', f'"slots": {SIZE}', f'"above": {above}']
    for name in _MODEL_NAMES:
        weights: Weights = getattr(model, name)
        scale = float(np.abs(weights.slots).max()) / WEIGHT_LEVELS or 1.0
        levels = np.rint(weights.slots / scale).astype(int).tolist()
        lines = [",".join(map(str, levels[at : at + WEIGHTS_PER_LINE])) for at in range(0, SIZE, WEIGHTS_PER_LINE)]
        numbers = ",\n".join(lines)
        parts.append(f'"{name}": {{"bias": {weights.bias:.5f}, "scale": {scale:.8f}, "weights": [\n{numbers}\n]}}')
    return "{" + ",\n".join(parts) + "}\n"


def parse_model(text: str) -> InjectionModel:
    """A model from the output of `dump_model`. Raises ValueError for another format or size."""
    # Not as JSON: 200,000 numbers would be objects for a moment, whose memory stays with the process.
    levels = [np.fromstring(match[1], np.float32, sep=",") for match in _WEIGHT_LIST.finditer(text)]
    data = json.loads(_WEIGHT_LIST.sub('"weights": []', text))
    if data["format"] != FORMAT or data["slots"] != SIZE:
        raise ValueError(f"weights of format {data['format']} with {data['slots']} slots do not fit this version")
    read = {}
    for name, own in zip(_MODEL_NAMES, levels, strict=True):
        part = data[name]
        slots = own * np.float32(part["scale"])
        if len(slots) != SIZE:
            raise ValueError(f"the weights of {name!r} have {len(slots)} slots; there should be {SIZE}")
        read[name] = Weights(slots, part["bias"])
    return InjectionModel(read["attack"], read["request"], read["addressed"], Thresholds(**data["above"]))


@cache
def load_shipped_model() -> InjectionModel:
    """The model of this repository, read once at its first use."""
    return parse_model(WEIGHTS.read_text("utf-8"))
