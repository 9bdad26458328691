"""Measures the guardrails: recall, false alarms, speed. Run `python -m tests.bench.guardrails [quick]`.

GUARDRAILS_DATA is a folder with `injection_dev.jsonl` and `pii_dev.jsonl` (../shared/data/guardrails by default). With
GUARDRAILS_HELD_OUT=1 its rows count as unseen, and only the shipped weights are judged. The shipped classifier was
trained on the development rows, so the figures that count are those out of fold: models retrained without the rows they
judge, inside the whole detector (rules, decoded text) and with the shipped thresholds. `quick` skips those.
"""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import numpy as np
from pydantic import JsonValue

from agent.policy.guardrails import GuardrailPipeline, GuardrailsInput, LinkFilter, PlaceholderMap, SecretScanner
from agent.policy.guardrails.classifier import InjectionModel, load_shipped_model
from agent.policy.guardrails.deobfuscation import normalize_disguises
from agent.policy.guardrails.harm import HarmDetector
from agent.policy.guardrails.injection import InjectionDetector, find_rule_matches
from agent.policy.guardrails.pii import PiiDetector, find_personal_data
from agent.policy.guardrails.text_features import Ints
from tests.bench.guardrails.rows import Row, load_development
from tests.bench.guardrails.training import (
    Bag,
    assign_folds,
    group_by_near_duplicate,
    group_by_template,
    load_additional,
    train_models,
)
from tests.bench.json_lines import read_json_lines

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "guardrails"
NAMES = {
    "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "CREDIT_CARD": "CARD", "IBAN_CODE": "IBAN", "IP_ADDRESS": "IP",
    "US_SSN": "SSN", "US_DRIVER_LICENSE": "LICENCE",
}  # fmt: skip
"""Kinds of the development file that have a form, and ours. Names, addresses and dates are not looked for."""
BLIND = Path(__file__).resolve().parents[2] / "unit" / "guardrails"
SOURCES = ("deepset", "NotInject_one", "NotInject_two", "WildGuard", "BIPIA", "InjecAgent", "in-the-wild", "sysprompt")
TRIES = 5
"""The fastest counts: the others tell of what else the machine had to do."""


def measure_injection(rows: Sequence[Row], held_out: bool, quick: bool) -> None:
    """Prints recall and false alarms of the injection detector."""
    _print_rates(
        "rules alone", rows, [bool(next(find_rule_matches(normalize_disguises(row.text).text), None)) for row in rows]
    )
    detector = InjectionDetector()
    title = "shipped weights" if held_out else "shipped weights (trained on these rows: too good)"
    _print_rates(title, rows, [_is_reported(detector, row) for row in rows])
    if held_out or quick:
        return
    bags = [Bag(row, 1.0) for row in rows]
    twins = group_by_near_duplicate(bags)
    for name, fold_of in (
        ("by template", assign_folds(group_by_template(bags), 0)),
        ("by near-duplicate", assign_folds(twins, 0)),
        ("one source left out at a time", _number_sources(rows)),
    ):
        _print_rates(f"out of fold, {name}", rows, _report_out_of_fold(bags, fold_of, twins))


def _number_sources(rows: Sequence[Row]) -> Ints:
    """A number for each data set that the rows come from."""
    names = [next((name for name in SOURCES if name in row.source), "") for row in rows]
    return np.array([sorted(set(names)).index(name) for name in names], np.int64)


def _report_out_of_fold(bags: Sequence[Bag], fold_of: Ints, twins: Sequence[int]) -> list[bool]:
    """Returns which rows are reported by models that saw neither the row nor a near-duplicate of it."""
    hits = [False] * len(bags)
    extra = load_additional()
    for fold in sorted(set(fold_of.tolist())):
        judged = {twin for twin, at in zip(twins, fold_of, strict=True) if at == fold}
        known = [bag for bag, at, twin in zip(bags, fold_of, twins, strict=True) if at != fold and twin not in judged]
        models = train_models([*known, *extra])
        detector = InjectionDetector(
            InjectionModel(models["attack"], models["request"], models["addressed"], load_shipped_model().thresholds)
        )
        for at in np.flatnonzero(fold_of == fold).tolist():
            hits[at] = _is_reported(detector, bags[at].row)
    return hits


def measure_blind() -> None:
    """Prints the figures for texts written before the detectors were looked at; their second half was opened once."""
    detector = InjectionDetector()
    for half in ("develop", "final"):
        lines = [*read_json_lines(BLIND / f"blind_{half}.jsonl")][1:]
        for told in (True, False):
            hits: dict[tuple[str, int], list[bool]] = defaultdict(list)
            for row in lines:
                metadata: dict[str, JsonValue] | None = {"tainted": row["role"] == "carried"} if told else None
                request = GuardrailsInput(content=row["text"], check_type="input_validation", metadata=metadata)
                hits[row["role"], row["label"]].append(bool(detector.find(request)))
            said = ", ".join(
                f"{role} {label}: {sum(part)} of {len(part)}" for (role, label), part in sorted(hits.items())
            )
            print(f"blind, {half}, origin {'told' if told else 'not told'}: {said}")
        found, wanted, right = 0, 0, 0
        for row in [*read_json_lines(BLIND / f"blind_personal_{half}.jsonl")][1:]:
            spans = {(span["start"], span["end"]) for span in row["spans"] if span["kind"] not in {"NAME", "ADDRESS"}}
            got = {(span.start, span.end) for _, span in find_personal_data(row["text"])}
            found, wanted, right = found + len(got), wanted + len(spans), right + len(got & spans)
        print(f"blind, {half}, personal data: precision {right / found:.3f}, recall {right / wanted:.3f}")


def _is_reported(detector: InjectionDetector, row: Row) -> bool:
    return bool(detector.find(GuardrailsInput(content=row.text, check_type="input_validation")))


def _print_rates(
    title: str, rows: Sequence[Row], hits: "Sequence[bool] | np.ndarray[tuple[int], np.dtype[np.float64]]"
) -> None:
    by_kind: dict[tuple[int, str], list[float]] = defaultdict(list)
    for row, hit in zip(rows, hits, strict=True):
        by_kind[row.label, row.kind].append(float(hit))
    recall, alarms = (
        np.mean([hit for (label, _), part in by_kind.items() if label == wanted for hit in part]) for wanted in (1, 0)
    )
    hard = np.mean([h for (_, kind), part in by_kind.items() if kind == "benign_hard_negative" for h in part] or [0.0])
    print(f"injection, {title}\n  recall {recall:.3f}, false alarms {alarms:.4f}, on hard benign prompts {hard:.4f}")
    for (_, kind), part in sorted(by_kind.items()):
        print(f"    {kind:22}{len(part):6}  {np.mean(part):.3f}")


def measure_pii(path: Path) -> None:
    """Prints precision and recall over exact spans of the right kind."""
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    rows = [*read_json_lines(path)]
    for row in rows:
        wanted = {(NAMES[s["type"]], s["start"], s["end"]) for s in row["spans"] if s["type"] in NAMES}
        found = {(kind, span.start, span.end) for kind, span in find_personal_data(row["text"])}
        for counter, spans in ((right, found & wanted), (wrong, found - wanted), (missed, wanted - found)):
            counter.update(kind for kind, _, _ in spans)
    hits, false, lost = right.total(), wrong.total(), missed.total()
    print(f"personal data, {len(rows)} texts, {hits + lost} spans of kinds that have a form")
    print(f"  precision {hits / max(hits + false, 1):.3f}, recall {hits / max(hits + lost, 1):.3f}")
    for kind in sorted(right | wrong | missed):
        print(f"    {kind:12} right {right[kind]:4}, wrong {wrong[kind]:3}, missed {missed[kind]:3}")


def measure_speed(rows: Sequence[Row]) -> None:
    """Prints the CPU time for texts of 1,000 characters, each the best of a few tries."""
    joined = "\n".join(row.text for row in rows)
    texts = [joined[at : at + 1_000] for at in range(0, min(len(joined), 200_000) - 1_000, 1_000)]
    links = LinkFilter(outside=[joined[:20_000]])
    vault = PlaceholderMap({"EMAIL_1": "a@example.org"})
    guardrails = GuardrailPipeline()

    def check(text: str) -> None:
        request = GuardrailsInput(content=text, check_type="input_validation")
        guardrails.apply_policy(text, guardrails.run_detectors(request), PlaceholderMap())

    def asks(detector: InjectionDetector | PiiDetector | SecretScanner | HarmDetector) -> Callable[[str], object]:
        return lambda text: detector.find(GuardrailsInput(content=text, check_type="input_validation"))

    secrets = SecretScanner([f"configured-secret-{number}-value" for number in range(10)])
    ways: dict[str, Callable[[str], object]] = {
        "injection": asks(InjectionDetector()), "personal data": asks(PiiDetector()), "secrets, 10 configured":
        asks(secrets), "harm": asks(HarmDetector()), "the whole check": check, "links": links.sanitize,
        "placeholders restored": vault.restore,
    }  # fmt: skip
    print(f"CPU milliseconds for 1,000 characters ({len(texts)} texts)")
    for name, run in ways.items():
        run(texts[0])
        times = [min(_milliseconds(run, text) for _ in range(TRIES)) for text in texts]
        print(f"    {name:24} median {np.median(times):.2f}, 95 % {np.percentile(times, 95):.2f}")


def _milliseconds(run: Callable[[str], object], text: str) -> float:
    started = process_time()
    run(text)
    return (process_time() - started) * 1000


def main(arguments: Sequence[str]) -> None:
    """Measures and prints."""
    folder = Path(os.environ.get("GUARDRAILS_DATA", DATA))
    if not (folder / "injection_dev.jsonl").exists():
        sys.exit(f"{folder} holds no injection_dev.jsonl; set GUARDRAILS_DATA to a folder that does")
    rows = load_development(folder / "injection_dev.jsonl")
    measure_injection(rows, os.environ.get("GUARDRAILS_HELD_OUT") == "1", "quick" in arguments)
    measure_pii(folder / "pii_dev.jsonl")
    measure_blind()
    measure_speed(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
