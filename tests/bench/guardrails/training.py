"""Trains the injection classifier: `python -m tests.bench.guardrails.training DEV.jsonl [OUT.json]`.

Three models use the same features. `attack`: does this text, or a part of it, attack the assistant? `addressed`: is it
an order to any machine that reads it? `request`: is this sentence a request to an assistant at all? The last one
applies to mails and tool results only, in which nobody should make requests; prompts of every kind are its examples, so
that it need not know the attack.

The part of an attack that makes it one is not labelled. The models are therefore trained twice: first on whole texts
and on what is known, then with the part of each attack that the first model scores highest (multiple-instance
learning).

Thresholds come from scores out of fold. With an OUT file the models are then trained on everything and written. Nothing
in it depends on the clock, on the order of sets, or on files that change, so that the output is reproducible.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from agent.policy.guardrails.classifier import (
    InjectionModel,
    Thresholds,
    build_windows,
    classify_shape,
    dump_model,
    is_carrier,
    select_order_spans,
    split_segments,
)
from agent.policy.guardrails.deobfuscation import normalize_disguises
from agent.policy.guardrails.text_features import SIZE, Floats, HashedText, Ints, Weights
from tests.bench.guardrails.forms import generate_forms
from tests.bench.guardrails.grammar import generate_orders, generate_other_texts, generate_pages, generate_prompts
from tests.bench.guardrails.logistic import SparseRows, fit
from tests.bench.guardrails.rows import (
    Row,
    group_near_duplicates,
    list_inserts,
    load_development,
    load_harmless_documents,
    load_own_prompts,
)

STRENGTH = {"attack": 20.0, "request": 10.0, "addressed": 10.0}
PARTS = 9
"""At most so many parts of a harmless text are counter-examples."""
PART, OWN, DOCUMENT, PROMPT, FORM, ORDER = 0.5, 0.7, 0.5, 0.3, 0.5, 0.5
"""What a part of a text, a text of our own, a document, and a prompt as an example of a request weigh beside a whole
text of the development file."""
ALARMS_CHAT, ALARMS_CHAT_ADDRESSED, ALARMS_CARRIER = 0.005, 0.0015, 0.02
"""The part of harmless texts of the development file, out of fold, that may score above the thresholds: less than the
one in a hundred that is allowed, for other people's texts are not like these."""
ALARMS_PAGE_ATTACK, ALARMS_PAGE = 0.005, 0.025
"""The same of our own harmless pages, by the model of attacks and by that of orders. They speak of prompts, rules and
agents more than others do: of package descriptions and system documents fewer are taken for attacks."""
FOLDS, ROUNDS = 5, 1
PAGES = ("own document", "own form", "own leaf")
"""Kinds that stand for texts from outside. The last are made of phrases, of which a fold holds all or none: they are
trained on, but no threshold is set by them."""
TURNED = {f"own {kind}" for kind in ("indirect", "addressed", "override", "extraction", "authority")}
LINE = 240
"""Attacks of these families, no longer than this, are orders to a machine wherever they stand."""


@dataclass
class Bag:
    """A text and the parts by which it can be judged."""

    row: Row
    weight: float
    hashed: HashedText = field(init=False)
    carrier: bool = field(init=False)
    outside: bool = field(init=False)
    """Whether it comes from somebody else, by its form or because we know."""
    parts: Ints = field(init=False)
    sentences: Ints = field(init=False)

    def __post_init__(self) -> None:
        text = normalize_disguises(self.row.text).text
        self.hashed = HashedText(text)
        self.carrier = is_carrier(classify_shape(text))
        self.outside = self.carrier or self.row.kind in PAGES
        self.sentences = split_segments(text)
        self.parts = build_windows(text, self.sentences)

    def text(self, span: Ints) -> str:
        """The words of a part."""
        return " ".join(self.hashed.text[span[0] : span[1]].split())


def load_additional() -> list[Bag]:
    """The training texts besides the development file."""
    rows, carried = load_own_prompts()
    said = [Row(each.text, each.label, "own override" if each.label else "own prompt") for each in generate_prompts()]
    said += [Row(each.text, each.label, "own other") for each in generate_other_texts()]
    return (
        [Bag(row, OWN) for row in rows + carried + said]
        + [Bag(row, DOCUMENT) for row in load_harmless_documents()]
        + [Bag(Row(text, 0, "own form"), FORM) for text in generate_forms()]
        + [Bag(Row(text, 0, "own leaf"), FORM) for text in generate_pages()]
    )


Examples = list[tuple[Bag, Ints, int, float]]


def train_models(bags: Sequence[Bag]) -> dict[str, Weights]:
    """The trained models."""
    return {"attack": _attack(bags), "request": _request(bags), "addressed": _addressed(bags)}


def _attack(bags: Sequence[Bag]) -> Weights:
    known: Examples = []
    for bag in bags:
        if bag.carrier and bag.row.label:
            continue
        known.append((bag, np.array([0, len(bag.hashed.text)]), bag.row.label, bag.weight))
        if not bag.row.label:
            known += [(bag, span, 0, PART) for span in bag.parts[1 : PARTS + 1]]
    model = _fit(known, "attack")
    worst = _select_worst_parts(bags, model, lambda bag: bag.parts[1:])
    return _fit(known + [(bag, span, 1, PART) for bag, span in worst if not bag.carrier], "attack")


def _request(bags: Sequence[Bag]) -> Weights:
    known: Examples = []
    for bag in bags:
        if not bag.row.label and (bag.carrier or bag.row.kind in {*PAGES, "own other"}):
            known += [(bag, span, 0, bag.weight) for span in bag.sentences]
        elif not bag.carrier and not bag.row.label and 12 < len(bag.hashed.text) < 160 and len(bag.hashed.starts) > 3:
            known.append((bag, np.array([0, len(bag.hashed.text)]), 1, PROMPT))
    for row in list_inserts():
        bag = Bag(row, 1.0)
        known.append((bag, np.array([0, len(bag.hashed.text)]), row.label, 1.0))
    known = _unique(known)
    model = _fit(known, "request")
    for _ in range(2):
        worst = _select_worst_parts([bag for bag in bags if bag.carrier], model, lambda bag: bag.sentences)
        model = _fit(known + _unique([(bag, span, 1, bag.weight) for bag, span in worst]), "request")
    return model


def _addressed(bags: Sequence[Bag], left_out: str = "") -> Weights:
    """The model of orders to a machine against harmless parts; attacks of other kinds are on neither side."""
    known: Examples = []
    for said in generate_orders(left_out):
        bag = Bag(Row(said.text, 1, said.family), 1.0)
        known.append((bag, np.array([0, len(bag.hashed.text)]), 1, ORDER))
    for bag in bags:
        if not bag.row.label:
            known += [(bag, span, 0, bag.weight) for span in bag.parts[: PARTS + 1]]
        elif bag.row.kind in TURNED and len(bag.hashed.text) < LINE:
            known.append((bag, np.array([0, len(bag.hashed.text)]), 1, bag.weight))
    for row in list_inserts():
        if not row.label or row.kind in {"own marked", "own addressed"}:
            bag = Bag(row, 1.0)
            known.append((bag, np.array([0, len(bag.hashed.text)]), row.label, OWN))
    return _fit(_unique(known), "addressed")


def _unique(examples: Examples) -> Examples:
    """Each wording once: the same footer occurs in fifty mails."""
    return list({(bag.text(span), label): (bag, span, label, weight) for bag, span, label, weight in examples}.values())


def _select_worst_parts(bags: Sequence[Bag], model: Weights, parts: Callable[[Bag], Ints]) -> list[tuple[Bag, Ints]]:
    """The part of each attack that scores highest and occurs in no harmless text."""
    harmless = {bag.text(span) for bag in bags if not bag.row.label for span in parts(bag)}
    found = []
    for bag in bags:
        spans = [span for span in parts(bag) if bag.text(span) not in harmless] if bag.row.label else []
        if spans:
            table = np.array(spans, np.int64)
            scores = bag.hashed.score(model, table)
            found.append((bag, table[int(scores.argmax())]))
    return found


def _fit(examples: Examples, name: str) -> Weights:
    rows = [bag.hashed.build_row(int(span[0]), int(span[1])) for bag, span, _, _ in examples]
    filled = [at for at, (slots, _) in enumerate(rows) if len(slots)]
    labels = np.array([examples[at][2] for at in filled], np.int64)
    weights = np.array([examples[at][3] for at in filled])
    return fit(SparseRows.join([rows[at] for at in filled]), labels, weights, STRENGTH[name])


def score_bag(bag: Bag, models: dict[str, Weights]) -> tuple[float, float, float]:
    """The highest scores of its parts as an attack, as an order to a machine, and as a request.

    The last one is minus infinity if requests are allowed.
    """
    said = bag.parts[select_order_spans(bag.hashed, bag.parts, bag.sentences)]
    attack, addressed = (
        float(bag.hashed.score(models[name], where).max())
        for name, where in (("attack", said if bag.outside else bag.parts), ("addressed", said))
    )
    if not bag.carrier or not len(bag.sentences):
        return attack, addressed, -np.inf
    asked = bag.hashed.score(models["request"], bag.sentences).max()
    return attack, addressed, float(asked)


def score_out_of_fold(bags: Sequence[Bag], extra: Sequence[Bag], groups: Sequence[int], seed: int) -> Floats:
    """Each bag's scores by models that saw nothing of its group."""
    fold_of = assign_folds(groups, seed)
    result = np.zeros((len(bags), 3))
    for fold in range(FOLDS):
        models = train_models([bag for bag, at in zip(bags, fold_of, strict=True) if at != fold] + list(extra))
        for at in np.flatnonzero(fold_of == fold).tolist():
            result[at] = score_bag(bags[at], models)
    return result


def assign_folds(groups: Sequence[int], seed: int) -> Ints:
    """A fold for each text; texts of one group share theirs."""
    names = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(names)) % FOLDS
    fold_of = dict(zip(names, order.tolist(), strict=True))
    return np.array([fold_of[group] for group in groups], np.int64)


def group_by_near_duplicate(bags: Sequence[Bag]) -> list[int]:
    """Returns groups of texts that share half their wording; the carriers of one kind are mostly one group."""
    return group_near_duplicates([bag.row.text for bag in bags])


def group_by_template(bags: Sequence[Bag]) -> list[int]:
    """Returns such groups for prompts; groups of carriers by the tool or the kind of request."""
    return group_near_duplicates(
        ["" if bag.carrier else bag.row.text for bag in bags], [_template(bag) for bag in bags]
    )


def choose_thresholds(found: Floats, bags: Sequence[Bag]) -> Thresholds:
    """The scores that the allowed share of harmless texts exceeds. `bags`: the development file's, then our
    own.
    """
    harmless = np.array([not bag.row.label for bag in bags])
    carrier = np.array([bag.carrier for bag in bags])
    page = np.array([bag.row.kind in PAGES[:2] for bag in bags])
    given = np.array([bool(bag.row.source) for bag in bags])
    chat = given & harmless & ~carrier
    pages = harmless & (page | (given & carrier))
    return Thresholds(
        attack=_exceeded(found[chat, 0], ALARMS_CHAT),
        attack_carried=_exceeded(found[pages, 0], ALARMS_PAGE_ATTACK),
        request=_exceeded(found[given & harmless & carrier, 2], ALARMS_CARRIER),
        addressed=_exceeded(found[chat, 1], ALARMS_CHAT_ADDRESSED),
        addressed_carried=_exceeded(found[pages, 1], ALARMS_PAGE),
    )


def _exceeded(scores: Floats, part: float) -> float:
    return float(np.sort(scores)[::-1][int(part * len(scores))]) if len(scores) else 0.0


def is_reported(found: Floats, bags: Sequence[Bag], limits: Thresholds) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Returns which texts are reported by one of the models."""
    outside = np.array([bag.outside for bag in bags])
    hits: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        (found[:, 0] > np.where(outside, limits.attack_carried, limits.attack))
        | (found[:, 1] > np.where(outside, limits.addressed_carried, limits.addressed))
        | (found[:, 2] > limits.request)
    )
    return hits


def print_report(found: Floats, bags: Sequence[Bag], limits: Thresholds) -> None:
    """Prints recall and false alarms by kind."""
    labels = np.array([bag.row.label for bag in bags])
    kinds = np.array([bag.row.kind for bag in bags])
    hits = is_reported(found, bags, limits)
    given = np.array([bool(bag.row.source) for bag in bags])
    print(f"  {limits}")
    print(
        f"  development file: recall {hits[given & (labels == 1)].mean():.3f}, "
        f"false alarms {hits[given & (labels == 0)].mean():.4f}"
    )
    for label, kind in sorted(set(zip(labels.tolist(), kinds.tolist(), strict=True))):
        part = hits[(kinds == kind) & (labels == label)]
        print(f"    {label} {kind:22} {len(part):5}  {part.mean():.3f}")


def main(path: Path, out: Path | None) -> None:
    """Cross-validates and prints a report; with an OUT file trains on everything and writes it.

    The same rows give the same file bit by bit, if numpy rounds alike.
    """
    bags = [Bag(row, 1.0) for row in load_development(path)]
    extra = load_additional()
    print(f"{len(bags)} rows, {len(extra)} of our own")
    own_groups = group_near_duplicates([bag.row.text for bag in extra])
    given = group_by_template(bags)
    groups = [*given, *(max(given) + 1 + group for group in own_groups)]
    every = [*bags, *extra]
    found = np.mean([score_out_of_fold(every, [], groups, seed) for seed in range(ROUNDS)], axis=0)
    limits = choose_thresholds(found, every)
    print_report(found, every, limits)
    if out is not None:
        models = train_models(every)
        out.write_text(
            dump_model(InjectionModel(models["attack"], models["request"], models["addressed"], limits)), "utf-8"
        )
        print(f"{out} has {out.stat().st_size:,} bytes, {SIZE} slots")


def _template(bag: Bag) -> str:
    """Returns what carriers made from one template share: the keys of a tool result, or a mail's kind of attack."""
    if not bag.carrier:
        return ""
    if classify_shape(bag.hashed.text) == "data":
        keys = [part.split(":")[0] for part in bag.hashed.text.split("'")[1:12:2]]
        return "data " + " ".join(key for key in keys if len(key) < 24 and " " not in key)[:60]
    return f"mail {bag.row.source}" if bag.row.label else ""


if __name__ == "__main__":
    if len(sys.argv) not in {2, 3}:
        sys.exit("usage: python -m tests.bench.guardrails.training DEV.jsonl [OUT.json]")
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else None)
