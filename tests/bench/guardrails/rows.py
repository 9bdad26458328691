"""The rows a classifier is trained on and judged by: the development file, and our own examples put into carriers."""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).with_name("examples.jsonl")
FAMILIES = Path(__file__).with_name("families.jsonl")
"""More examples like those, written by families of attacks and of what is taken for one."""
DOCUMENTS = Path(__file__).with_name("documents.jsonl")
SHINGLE = 8
ALIKE = 0.5
"""Two texts that share this part of the shorter one's shingles are near-duplicates."""
INSERTS, FILLERS, JOINED = 10, 8, 120


@dataclass(frozen=True)
class Row:
    """A text, whether it is an attack, and which kind of text it is."""

    text: str
    label: int
    kind: str
    source: str = ""


def development(path: Path) -> list[Row]:
    """A JSONL file of `{text, label, kind, source}`."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [Row(row["text"], row["label"], row["kind"], row.get("source", "")) for row in rows]


def own() -> tuple[list[Row], list[Row]]:
    """Our own prompts, and our own carriers with something put into them."""
    parts = _parts()
    rng = random.Random(7)
    prompts = [Row(p["text"], p["label"], f"own {p['kind']}") for p in parts if p["role"] == "prompt"]
    harmless = [row.text for row in prompts if not row.label and row.kind == "own everyday"]
    attacks = [row.text for row in prompts if row.label and row.kind != "own indirect"]
    prompts += [Row(f"{rng.choice(harmless)} {rng.choice(attacks)}", 1, "own joined") for _ in range(JOINED)]
    prompts += [Row(" ".join(rng.sample(harmless, 2)), 0, "own joined") for _ in range(JOINED // 2)]
    carried = []
    inserts = [p for p in parts if p["role"] == "insert"]
    for carrier in (p for p in parts if p["role"] == "carrier"):
        for label, count in ((1, INSERTS), (0, FILLERS)):
            for insert in rng.sample([p for p in inserts if p["label"] == label], count):
                between = rng.choice("\n ") if carrier["kind"] == "mail" and carrier["text"][0] != "{" else ""
                text = carrier["text"].replace("{}", between + insert["text"])
                carried.append(Row(text, label, f"own {carrier['kind']}"))
    return prompts, carried


def house() -> list[Row]:
    """Harmless documents: paragraphs of this project's pages, alone and by threes, and pieces of its sources, as they
    stood once, so that training gives the same weights whatever becomes of the pages. A model that knew prompts only
    would take every table and every listing for an attack."""
    lines = DOCUMENTS.read_text("utf-8").splitlines()[1:]
    return [Row(json.loads(line)["text"], 0, "own document") for line in lines]


def inserts() -> list[Row]:
    """What our own examples put into carriers, by itself."""
    return [Row(p["text"], p["label"], f"own {p['kind']}") for p in _parts() if p["role"] == "insert"]


def _parts() -> list[dict[str, Any]]:
    """Our own examples; the first line of each file says where it comes from."""
    return [json.loads(line) for path in (EXAMPLES, FAMILIES) for line in path.read_text("utf-8").splitlines()[1:]]


def near_duplicates(texts: Sequence[str], keys: Sequence[str] = ()) -> list[int]:
    """A group number for each text: texts that share half their shingles, or a key that is not empty, are of one group,
    so that none is judged by a model that saw its twin."""
    parent = list(range(len(texts)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    held: dict[str, list[int]] = defaultdict(list)
    pieces = [_shingles(text) for text in texts]
    for at, mine in enumerate(pieces):
        shared: Counter[int] = Counter(other for piece in mine for other in held[piece])
        for other, count in sorted(shared.items()):  # sets have no order of their own, and folds go by the first
            if count >= ALIKE * min(len(mine), len(pieces[other])):
                parent[root(at)] = root(other)
        for piece in mine if texts[at] else ():
            held[piece].append(at)
    first: dict[str, int] = {}
    for at, key in enumerate(keys):
        if key:
            parent[root(at)] = root(first.setdefault(key, at))
    return [root(at) for at in range(len(texts))]


def _shingles(text: str) -> set[str]:
    flat = re.sub(r"\d", "0", " ".join(text.lower().split()))
    return {flat[at : at + SHINGLE] for at in range(max(1, len(flat) - SHINGLE + 1))}
