"""The injection classifier: two linear models read from a text file, and the scores above which they speak up."""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from agent.guardrails.features import SIZE, Floats, Hashed, Weights
from agent.guardrails.segments import Shape, sentences, shape, windows

WEIGHTS: Final = Path(__file__).with_name("weights.json")
FORMAT: Final = 1
LEVELS: Final = 127
"""Weights are kept as whole numbers from -127 to 127 times a scale: under 400 kB, and a diff one can read."""
PER_LINE: Final = 64
SLOPE: Final = 1.0
"""A score this far above its threshold is as likely as 0.73."""


@dataclass(frozen=True, slots=True)
class Model:
    """What training makes."""

    attack: Weights
    """Is this part of a text an attack on the assistant?"""
    request: Weights
    """Is this sentence a request to an assistant?"""
    attack_above: float
    request_above: float


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The most suspicious part of a text."""

    kind: str
    """`attack`, or `request` for a request in a text in which nobody should ask anything."""
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
    found = [_worst("attack", hashed.score(model.attack, spans[:, 0], spans[:, 1]) - model.attack_above, spans)]
    if (carries(shape(text)) if carrier is None else carrier) and len(parts):
        found.append(
            _worst("request", hashed.score(model.request, parts[:, 0], parts[:, 1]) - model.request_above, parts)
        )
    return sorted(found, key=lambda suspicion: -suspicion.probability)


def _worst(kind: str, above: Floats, spans: "np.ndarray[tuple[int, int], np.dtype[np.int64]]") -> Suspicion:
    at = int(above.argmax())
    return Suspicion(
        kind, int(spans[at, 0]), int(spans[at, 1]), 1 / (1 + math.exp(-max(min(float(above[at]), 50), -50)))
    )


def dump(model: Model) -> str:
    """The model as JSON, in lines of 64 weights."""
    parts = [f'"format": {FORMAT}', f'"slots": {SIZE}']
    for name, weights, above in (
        ("attack", model.attack, model.attack_above),
        ("request", model.request, model.request_above),
    ):
        scale = float(np.abs(weights.slots).max()) / LEVELS or 1.0
        levels = np.rint(weights.slots / scale).astype(int).tolist()
        lines = [",".join(map(str, levels[at : at + PER_LINE])) for at in range(0, SIZE, PER_LINE)]
        numbers = ",\n".join(lines)
        parts.append(
            f'"{name}": {{"above": {above:.4f}, "bias": {weights.bias:.5f}, "scale": {scale:.8f}, '
            f'"weights": [\n{numbers}\n]}}'
        )
    return "{" + ",\n".join(parts) + "}\n"


def parse(text: str) -> Model:
    """A model from `dump`. Raises ValueError for another format or size."""
    data = json.loads(text)
    if data["format"] != FORMAT or data["slots"] != SIZE:
        raise ValueError(f"weights of format {data['format']} with {data['slots']} slots do not fit this version")
    read = {}
    for name in ("attack", "request"):
        part = data[name]
        slots = np.array(part["weights"], np.float32) * np.float32(part["scale"])
        if len(slots) != SIZE:
            raise ValueError(f"the weights of {name!r} have {len(slots)} slots; there should be {SIZE}")
        read[name] = Weights(slots, part["bias"])
    return Model(read["attack"], read["request"], data["attack"]["above"], data["request"]["above"])


@cache
def shipped() -> Model:
    """The model in this repository, read once, at the first use."""
    return parse(WEIGHTS.read_text("utf-8"))
