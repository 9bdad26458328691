"""The rows that the classifier is trained on and judged by: the development file, and our own examples in carriers."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.json_lines import read_json_lines

EXAMPLES = Path(__file__).with_name("examples.jsonl")
FAMILIES = Path(__file__).with_name("families.jsonl")
"""More examples like those, written by families of attacks and of what is taken for one."""
DOCUMENTS = Path(__file__).with_name("documents.jsonl")
SHINGLE = 8
MIN_SHARED_SHINGLES = 0.5
"""Two texts that share this part of the shorter one's shingles are near-duplicates."""
INSERTS, FILLERS, JOINED = 10, 8, 120


@dataclass(frozen=True)
class Row:
    """A text, whether it is an attack, and which kind of text it is."""

    text: str
    label: int
    kind: str
    source: str = ""


def load_development(path: Path) -> list[Row]:
    """The rows of a JSONL file of `{text, label, kind, source}`."""
    return [Row(row["text"], row["label"], row["kind"], row.get("source", "")) for row in read_json_lines(path)]


def load_own_prompts() -> tuple[list[Row], list[Row]]:
    """Our own prompts, and our own carriers with examples inserted."""
    parts = _load_parts()
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


def load_harmless_documents() -> list[Row]:
    """Harmless documents: paragraphs of this project's pages, alone and in threes, and pieces of its sources.

    They are a frozen copy, so that training gives the same weights whatever becomes of the pages. A model that saw only
    prompts would take tables and code for attacks.
    """
    _, *rows = read_json_lines(DOCUMENTS)
    return [Row(row["text"], 0, "own document") for row in rows]


def list_inserts() -> list[Row]:
    """Returns what our own examples insert into carriers."""
    return [Row(p["text"], p["label"], f"own {p['kind']}") for p in _load_parts() if p["role"] == "insert"]


def _load_parts() -> list[dict[str, Any]]:
    """Our own examples; the first line of each file gives its origin."""
    return [row for path in (EXAMPLES, FAMILIES) for row in [*read_json_lines(path)][1:]]


def group_near_duplicates(texts: Sequence[str], keys: Sequence[str] = ()) -> list[int]:
    """A group number for each text.

    Texts that share half their shingles, or a non-empty key, are in one group, so that none is judged by a model that
    saw its near-duplicate.
    """
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
            if count >= MIN_SHARED_SHINGLES * min(len(mine), len(pieces[other])):
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
