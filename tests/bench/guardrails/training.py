"""Trains the injection classifier: `python -m tests.bench.guardrails.training DEV.jsonl [OUT.json]`.

Two models over the same features. `attack`: does this text, or a part of it, turn on the assistant? `request`: is this
sentence a request to an assistant at all? The second one matters in mails and tool results only, where nobody should
ask anything of us; prompts of every kind are its examples, so that it need not know the attack.

Which part of an attack is the attack is not labelled. Both are trained twice: first on whole texts and on what is
known, then with the part of each attack that the first model finds worst (multiple-instance learning).

Thresholds come from scores out of fold. With an OUT file the models are then trained on everything and written.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from agent.guardrails.classifier import Model, carries, dump
from agent.guardrails.features import SIZE, Floats, Hashed, Ints, Weights
from agent.guardrails.segments import sentences, shape, windows
from agent.guardrails.views import plain
from tests.bench.guardrails.logistic import Rows, fit
from tests.bench.guardrails.rows import Row, development, house, inserts, near_duplicates, own

STRENGTH = {"attack": 20.0, "request": 10.0}
PARTS = 12
"""At most so many parts of a harmless text are counter-examples."""
PART, OWN, DOCUMENT, PROMPT = 0.5, 0.7, 0.5, 0.3
"""What a part of a text, a text of our own, a document, and a prompt as an example of a request weigh beside a whole
text of the development file."""
ALARMS_CHAT, ALARMS_CARRIER = 0.003, 0.02
"""The part of harmless texts out of fold that may score above the thresholds: a third of what is allowed, for other
people's texts are not like these."""
FOLDS, ROUNDS = 5, 3


@dataclass
class Bag:
    """A text and the parts it may be judged by."""

    row: Row
    weight: float
    hashed: Hashed = field(init=False)
    carrier: bool = field(init=False)
    parts: Ints = field(init=False)
    sentences: Ints = field(init=False)

    def __post_init__(self) -> None:
        text = plain(self.row.text).text
        self.hashed = Hashed(text)
        self.carrier = carries(shape(text))
        self.sentences = sentences(text)
        self.parts = windows(text, self.sentences)

    def text(self, span: Ints) -> str:
        """The words of a part."""
        return " ".join(self.hashed.text[span[0] : span[1]].split())


def additional() -> list[Bag]:
    """What is trained on besides the development file."""
    prompts, carried = own()
    return [Bag(row, OWN) for row in prompts + carried] + [Bag(row, DOCUMENT) for row in house()]


Examples = list[tuple[Bag, Ints, int, float]]


def train(bags: Sequence[Bag]) -> dict[str, Weights]:
    """Both models."""
    return {"attack": _attack(bags), "request": _request(bags)}


def _attack(bags: Sequence[Bag]) -> Weights:
    known: Examples = []
    for bag in bags:
        if bag.carrier and bag.row.label:
            continue
        known.append((bag, np.array([0, len(bag.hashed.text)]), bag.row.label, bag.weight))
        if not bag.row.label:
            known += [(bag, span, 0, PART) for span in bag.parts[1 : PARTS + 1]]
    model = _fit(known, "attack")
    worst = _worst(bags, model, lambda bag: bag.parts[1:])
    return _fit(known + [(bag, span, 1, PART) for bag, span in worst if not bag.carrier], "attack")


def _request(bags: Sequence[Bag]) -> Weights:
    known: Examples = []
    for bag in bags:
        if not bag.row.label and (bag.carrier or bag.row.kind == "own document"):
            known += [(bag, span, 0, bag.weight) for span in bag.sentences]
        elif not bag.carrier and not bag.row.label and 12 < len(bag.hashed.text) < 160 and len(bag.hashed.starts) > 3:
            known.append((bag, np.array([0, len(bag.hashed.text)]), 1, PROMPT))
    for row in inserts():
        bag = Bag(row, 1.0)
        known.append((bag, np.array([0, len(bag.hashed.text)]), row.label, 1.0))
    known = _unique(known)
    model = _fit(known, "request")
    for _ in range(2):
        worst = _worst([bag for bag in bags if bag.carrier], model, lambda bag: bag.sentences)
        model = _fit(known + _unique([(bag, span, 1, bag.weight) for bag, span in worst]), "request")
    return model


def _unique(examples: Examples) -> Examples:
    """Each wording once: the same footer stands under fifty mails."""
    return list({(bag.text(span), label): (bag, span, label, weight) for bag, span, label, weight in examples}.values())


def _worst(bags: Sequence[Bag], model: Weights, parts: Callable[[Bag], Ints]) -> list[tuple[Bag, Ints]]:
    """The part of each attack that scores highest and stands in no harmless text."""
    harmless = {bag.text(span) for bag in bags if not bag.row.label for span in parts(bag)}
    found = []
    for bag in bags:
        spans = [span for span in parts(bag) if bag.text(span) not in harmless] if bag.row.label else []
        if spans:
            table = np.array(spans, np.int64)
            scores = bag.hashed.score(model, table[:, 0], table[:, 1])
            found.append((bag, table[int(scores.argmax())]))
    return found


def _fit(examples: Examples, name: str) -> Weights:
    rows = [bag.hashed.row(int(span[0]), int(span[1])) for bag, span, _, _ in examples]
    filled = [at for at, (slots, _) in enumerate(rows) if len(slots)]
    labels = np.array([examples[at][2] for at in filled], np.int64)
    weights = np.array([examples[at][3] for at in filled])
    return fit(Rows.of([rows[at] for at in filled]), labels, weights, STRENGTH[name])


def scores(bag: Bag, models: dict[str, Weights]) -> tuple[float, float]:
    """The worst part as an attack, and as a request (minus infinity where requests are fine)."""
    attack = bag.hashed.score(models["attack"], bag.parts[:, 0], bag.parts[:, 1]).max()
    if not bag.carrier or not len(bag.sentences):
        return float(attack), -np.inf
    asked = bag.hashed.score(models["request"], bag.sentences[:, 0], bag.sentences[:, 1]).max()
    return float(attack), float(asked)


def out_of_fold(bags: Sequence[Bag], extra: Sequence[Bag], groups: Sequence[int], seed: int) -> Floats:
    """Each bag's two scores by models that saw nothing of its group."""
    fold_of = folds(groups, seed)
    result = np.zeros((len(bags), 2))
    for fold in range(FOLDS):
        models = train([bag for bag, at in zip(bags, fold_of, strict=True) if at != fold] + list(extra))
        for at in np.flatnonzero(fold_of == fold).tolist():
            result[at] = scores(bags[at], models)
    return result


def folds(groups: Sequence[int], seed: int) -> Ints:
    """A fold for each text; those of one group share theirs."""
    names = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(names)) % FOLDS
    fold_of = dict(zip(names, order.tolist(), strict=True))
    return np.array([fold_of[group] for group in groups], np.int64)


def by_near_duplicate(bags: Sequence[Bag]) -> list[int]:
    """Groups of texts that share half their wording: the carriers of one kind are mostly one group."""
    return near_duplicates([bag.row.text for bag in bags])


def by_template(bags: Sequence[Bag]) -> list[int]:
    """The same for prompts; for carriers, groups by the tool whose result it is, or the kind of what is asked."""
    return near_duplicates(["" if bag.carrier else bag.row.text for bag in bags], [_template(bag) for bag in bags])


def thresholds(found: Floats, bags: Sequence[Bag]) -> tuple[float, float]:
    """The scores that the allowed part of harmless texts exceed."""
    harmless = np.array([not bag.row.label for bag in bags])
    carrier = np.array([bag.carrier for bag in bags])
    attack = np.sort(found[harmless, 0])[::-1]
    asked = np.sort(found[harmless & carrier, 1])[::-1]
    return (
        float(attack[int(ALARMS_CHAT * len(attack))]),
        float(asked[int(ALARMS_CARRIER * len(asked))]) if len(asked) else 0.0,
    )


def report(found: Sequence[Floats], bags: Sequence[Bag]) -> None:
    """Recall and false alarms of the rounds, all thresholds from the pooled scores."""
    limit = thresholds(np.mean(found, axis=0), bags)
    labels = np.array([bag.row.label for bag in bags])
    kinds = np.array([bag.row.kind for bag in bags])
    hits = np.array([(each[:, 0] > limit[0]) | (each[:, 1] > limit[1]) for each in found])
    rounds = [(hit[labels == 1].mean(), hit[labels == 0].mean()) for hit in hits]
    recall, alarms = np.array(rounds).T
    print(f"  thresholds {limit[0]:.2f} {limit[1]:.2f}")
    print(f"  recall {recall.mean():.3f} +- {recall.std():.3f}, false alarms {alarms.mean():.4f} +- {alarms.std():.4f}")
    for kind in sorted(set(kinds), key=lambda kind: (labels[kinds == kind][0], kind)):
        part = hits[:, kinds == kind]
        print(f"    {kind:22} {part.shape[1]:5}  {part.mean():.3f} (lowest {part.mean(1).min():.3f})")


def main(path: Path, out: Path | None) -> None:
    """Cross-validate in three ways, then train on everything."""
    rows = development(path)
    bags = [Bag(row, 1.0) for row in rows]
    extra = additional()
    clusters, templates = by_near_duplicate(bags), by_template(bags)
    print(f"{len(rows)} rows, {len(set(clusters))} clusters, {len(set(templates))} templates; {len(extra)} of our own")
    found = {}
    for name, groups in (("by template", templates), ("by near-duplicate", clusters)):
        found[name] = [out_of_fold(bags, extra, groups, seed) for seed in range(ROUNDS)]
        print(name)
        report(found[name], bags)
    print("trained on our own examples only")
    models = train(extra)
    report([np.array([scores(bag, models) for bag in bags])], bags)
    if out is not None:
        limit = thresholds(np.mean(found["by template"], axis=0), bags)
        models = train([*bags, *extra])
        model = Model(models["attack"], models["request"], *limit)
        out.write_text(dump(model), "utf-8")
        print(f"{out} has {out.stat().st_size:,} bytes, {SIZE} slots")


def _template(bag: Bag) -> str:
    """What carriers made from one template share: a tool result's keys; a mail's kind of attack."""
    if not bag.carrier:
        return ""
    if shape(bag.hashed.text) == "data":
        keys = [part.split(":")[0] for part in bag.hashed.text.split("'")[1:12:2]]
        return "data " + " ".join(key for key in keys if len(key) < 24 and " " not in key)[:60]
    return f"mail {bag.row.source}" if bag.row.label else ""


if __name__ == "__main__":
    if len(sys.argv) not in {2, 3}:
        sys.exit("usage: python -m tests.bench.guardrails.training DEV.jsonl [OUT.json]")
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else None)
