"""The injection classifier: three linear models read from a text file, and the scores above which they speak up."""

import json
import math
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from agent.guardrails.features import SIZE, Floats, Hashed, Ints, Weights
from agent.guardrails.segments import Shape, demands, sentences, shape, windows

WEIGHTS: Final = Path(__file__).with_name("weights.json")
FORMAT: Final = 2
LEVELS: Final = 127
"""Weights are kept as whole numbers from -127 to 127 times a scale: under 500 kB, and a diff one can read."""
PER_LINE: Final = 64
WORDS: Final = 4
"""Words, signs among them, of the shortest order."""
SLOPE: Final = 1.0
"""A score this far above its threshold is as likely as 0.73."""


@dataclass(frozen=True, slots=True)
class Model:
    """What training makes."""

    attack: Weights
    """Is this part of a text an attack on the assistant?"""
    request: Weights
    """Is this sentence a request to an assistant?"""
    addressed: Weights
    """Is this part of a text an order to a machine that reads it?"""
    above: "Limits"


@dataclass(frozen=True, slots=True)
class Limits:
    """The scores above which the models speak up, in what a person says to the assistant and in what somebody else
    wrote: texts from outside are of more kinds, and an order to a machine in them is nobody's wish."""

    attack: float
    attack_carried: float
    request: float
    addressed: float
    addressed_carried: float


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The most suspicious part of a text."""

    kind: str
    """`attack`; `addressed`, an order to whatever machine reads the text; `request`, a request in a text in which
    nobody should ask anything."""
    start: int
    end: int
    probability: float
    """0.5 at the threshold; not calibrated beyond it."""


def carries(form: Shape) -> bool:
    """Whether a text of this form brings something from somebody else."""
    return form != "chat"


def suspect(text: str, model: Model, *, carrier: bool | None = None) -> list[Suspicion]:
    """The worst part by each model, most suspicious first. `carrier` says what is known of the text's origin; None
    lets its form decide."""
    if not text.strip():
        return []
    hashed = Hashed(text)
    parts = sentences(text)
    spans = windows(text, parts)
    known = carries(shape(text)) if carrier is None else carrier
    attack, addressed = (
        (model.above.attack_carried, model.above.addressed_carried)
        if known
        else (model.above.attack, model.above.addressed)
    )
    turns, orders = hashed.scores((model.attack, model.addressed), spans[:, 0], spans[:, 1])
    said = telling(hashed, spans, parts)
    heard = said if known else np.arange(len(spans))
    if not known and '"' in text:
        mention = mentioned(text, spans)
        said, heard = said[~mention[said]], heard[~mention[heard]]
    found = [
        _worst(kind, scores[where] - above, spans[where])
        for kind, scores, above, where in (("attack", turns, attack, heard), ("addressed", orders, addressed, said))
        if len(where)
    ]
    asked = demands(text, parts) if known else parts[:0]
    if len(asked):
        found.append(
            _worst("request", hashed.score(model.request, asked[:, 0], asked[:, 1]) - model.above.request, asked)
        )
    return sorted(found, key=lambda suspicion: -suspicion.probability)


def telling(hashed: Hashed, spans: Ints, parts: Ints) -> Ints:
    """Which of a text's spans somebody else's order to a machine is looked for in: its sentences, and two in a row. A
    whole page speaks of too much, and a heading of three words of too little."""
    small = np.arange(len(spans) + 1 - 2 * len(parts) if len(parts) > 1 else 0, len(spans), dtype=np.int64)
    words = np.searchsorted(hashed.starts, spans[small, 1]) - np.searchsorted(hashed.starts, spans[small, 0])
    kept: Ints = small[words >= WORDS]
    return kept if len(kept) else small


def mentioned(text: str, spans: Ints) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which spans lie within quotation marks: whoever asks to translate a sentence does not say it. The words around
    are read with it, in the whole."""
    marks = np.array([match.start() for match in re.finditer('"', text)], np.int64)
    before = np.searchsorted(marks, spans[:, 0])
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        (before % 2 == 1) & (np.searchsorted(marks, spans[:, 1]) == before) & (before < len(marks))
    )
    return inside


def _worst(kind: str, above: Floats, spans: Ints) -> Suspicion:
    at = int(above.argmax())
    return Suspicion(
        kind, int(spans[at, 0]), int(spans[at, 1]), 1 / (1 + math.exp(-max(min(float(above[at]), 50), -50)))
    )


def dump(model: Model) -> str:
    """The model as JSON, in lines of 64 weights."""
    above = json.dumps({name: round(value, 4) for name, value in asdict(model.above).items()})
    parts = [f'"format": {FORMAT}', f'"slots": {SIZE}', f'"above": {above}']
    for name, weights in (("attack", model.attack), ("request", model.request), ("addressed", model.addressed)):
        scale = float(np.abs(weights.slots).max()) / LEVELS or 1.0
        levels = np.rint(weights.slots / scale).astype(int).tolist()
        lines = [",".join(map(str, levels[at : at + PER_LINE])) for at in range(0, SIZE, PER_LINE)]
        numbers = ",\n".join(lines)
        parts.append(f'"{name}": {{"bias": {weights.bias:.5f}, "scale": {scale:.8f}, "weights": [\n{numbers}\n]}}')
    return "{" + ",\n".join(parts) + "}\n"


def parse(text: str) -> Model:
    """A model from `dump`. Raises ValueError for another format or size."""
    data = json.loads(text)
    if data["format"] != FORMAT or data["slots"] != SIZE:
        raise ValueError(f"weights of format {data['format']} with {data['slots']} slots do not fit this version")
    read = {}
    for name in ("attack", "request", "addressed"):
        part = data[name]
        slots = np.array(part["weights"], np.float32) * np.float32(part["scale"])
        if len(slots) != SIZE:
            raise ValueError(f"the weights of {name!r} have {len(slots)} slots; there should be {SIZE}")
        read[name] = Weights(slots, part["bias"])
    return Model(read["attack"], read["request"], read["addressed"], Limits(**data["above"]))


@cache
def shipped() -> Model:
    """The model in this repository, read once, at the first use."""
    return parse(WEIGHTS.read_text("utf-8"))
