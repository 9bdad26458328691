"""Generates harmless texts by their form: package metadata, lists of links or words, tables, code, logs, licences.

They have no meaning. A model trained on prompts alone takes such texts for attacks. Used by `training.py`.
"""

# ruff: noqa: SIM905 - lists of quoted words read worse

import random
from collections.abc import Callable

from tests.bench.guardrails.grammar import load_frames

FORMS = 440
_SYLLABLES = tuple("ka lo min ter sol ve ra dun pi gor es tal ny fa bru qui zen ol mar tik ush ple".split())
_NOUNS = tuple(
    "file value option folder version image module parser queue window driver table record signal buffer socket job "
    "branch release build package header license copyright notice warranty author platform library source binary "
    "network server client request response page section number index type field list set path name key".split()
)  # fmt: skip
_VERBS = tuple(
    "adds removes changes fixes returns raises reads writes opens closes checks uses supports drops moves".split()
)
_LAW = (
    "permission to use and copy {n} is given to anyone", "provided that the {n} above appears in all copies",
    "the {n} is supplied as it stands, without warranty of any kind", "in no event shall the {n} holders be liable",
    "you must not claim that you wrote the {n}", "altered {n} versions must be plainly marked",
    "this {n} may not be removed from any distribution", "neither the name of the {n} nor its contributors may be used",
    "you may add your own statement to your {n}", "each recipient is granted the rights of this {n}",
    "copies of the {n} keep the notice, the list of terms and the disclaimer",
    "the disclaimer below applies to the {n}",
    "the terms of section 4 override any other {n}", "all previous agreements on the {n} are void",
)  # fmt: skip


def generate_forms() -> list[str]:
    """Returns texts of every form in turn."""
    rng = random.Random("forms")
    return [_FORMS[at % len(_FORMS)](rng) for at in range(FORMS)]


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3)))


def _metadata(rng: random.Random) -> str:
    name = _name(rng)
    lines = [f"Metadata-Version: 2.{rng.randint(1, 5)}", f"Name: {name}", f"Version: {_version(rng)}"]
    lines += [f"Summary: {rng.choice(_NOUNS)} {rng.choice(_NOUNS)} for {_name(rng)}", f"Author: {_name(rng).title()}"]
    topics = (*_NOUNS, "developers", "artificial intelligence", "operating system", "system administrators")
    pairs = [rng.sample(topics, 2) for _ in range(rng.randint(0, 20))]
    lines += [f"Classifier: {a.title()} :: {b.title()}" for a, b in pairs]
    lines += [f"Project-URL: {n.title()}, https://{name}.example/{n}" for n in rng.sample(_NOUNS, 3)]
    lines += [
        f"Requires-Dist: {_name(rng)}>={_version(rng)}; extra == '{n}'" for n in rng.sample(_NOUNS, rng.randint(0, 8))
    ]
    return "\n".join(lines)


def _version(rng: random.Random) -> str:
    return ".".join(str(rng.randint(0, 20)) for _ in range(3))


def _badges(rng: random.Random) -> str:
    one = [
        f"[![{n.title()}](https://img.{_name(rng)}.example/{n}/{_name(rng)}.svg)](https://{_name(rng)}.example/{n})"
        for n in rng.sample(_NOUNS, rng.randint(2, 6))
    ]
    two = [
        f".. |{n}| image:: https://{_name(rng)}.example/{n}.svg\n    :target: https://{_name(rng)}.example"
        for n in rng.sample(_NOUNS, 3)
    ]
    three = [f"[{n}-url]: https://{_name(rng)}.example/project/{_name(rng)}/" for n in rng.sample(_NOUNS, 5)]
    return "\n".join(rng.choice((one, two, three)))


def _words(rng: random.Random) -> str:
    """Words of a language without order: frequent words, indexes, glossaries."""
    said = rng.choice(list(load_frames().values()))
    words = [
        word.strip('.,:!?"')
        for role in ("human_act", "about", "human_override")
        for text in said[role]
        for word in text.split()
    ]
    return rng.choice(("\n", "\n", " ", ", ")).join(
        rng.choices([w for w in words if w and "{" not in w], k=rng.randint(20, 90))
    )


def _syllables(rng: random.Random) -> str:
    return rng.choice(("\n", " ")).join(_name(rng)[: rng.randint(2, 9)] for _ in range(rng.randint(20, 80)))


def _letters(rng: random.Random) -> str:
    """Words in scripts that no example uses."""
    first = rng.choice((0x0531, 0x05D0, 0x0915, 0x0B95, 0x0E01, 0x10D0, 0x1200, 0x1780, 0xAC00))
    words = [
        "".join(chr(first + rng.randint(0, 25)) for _ in range(rng.randint(2, 8))) for _ in range(rng.randint(10, 60))
    ]
    return rng.choice(("\n", " ")).join(words)


def _repeats(rng: random.Random) -> str:
    """One word repeated: lists of kinds, operators, models."""
    head = rng.choice(
        ("ai", "model", "agent", "user", "system", "prompt", "rule", "command", "instruction", "policy", "key")
    )
    mark = rng.choice((".", ":", "-", "_", " "))
    tail = rng.choice(("", "|", ",", ";"))
    return "\n".join(
        f"{tail}{head}{mark}{rng.choice(_NOUNS)}{mark}{_name(rng)}{tail}" for _ in range(rng.randint(5, 40))
    )


def _drawing(rng: random.Random) -> str:
    width = rng.randint(20, 60)
    boxes = [
        rng.choice(("User", "Model", "Agent", "Planner", "Tool", "Store", "Request", "Assistant", "Queue"))
        for _ in range(rng.randint(2, 6))
    ]
    lines = [f"┌{'─' * width}┐\n│{name:^{width}}│\n└{'─' * width}┘" for name in boxes]
    return f"```\n{f'{chr(10)}{chr(32) * (width // 2)}▼{chr(10)}'.join(lines)}\n```"


def _table(rng: random.Random) -> str:
    columns = rng.sample(_NOUNS, rng.randint(2, 5))
    rows = [
        [_name(rng) if rng.random() < 0.5 else str(rng.randint(0, 9999)) for _ in columns]
        for _ in range(rng.randint(3, 9))
    ]
    lines = [columns, ["---"] * len(columns), *rows]
    mark = rng.choice(("| ", "\t", ",", "  "))
    return "\n".join(mark.join(line) for line in lines)


def _python(rng: random.Random) -> str:
    one, two, three = rng.sample(_NOUNS, 3)
    return (
        f"```python\nfrom {_name(rng)} import {one.title()}\n\n{two} = {one.title()}({three}=\"{_name(rng)}\")\n"
        f"for {three} in {two}.{rng.choice(_VERBS)}({rng.randint(1, 99)}):\n    print({three}.{one})\n```"
    )  # fmt: skip


def _c(rng: random.Random) -> str:
    one, two = rng.sample(_NOUNS, 2)
    return (
        f"/*\n * {one}_{two}.c - {rng.choice(_VERBS)} the {one}\n */\n#include <{_name(rng)}.h>\n\n"
        f"static int {one}_{two}(struct {one} *{two})\n{{\n\tif (!{two}->{one})\n"
        f"\t\treturn -{rng.randint(1, 40)};\n\treturn 0;\n}}"
    )  # fmt: skip


def _html(rng: random.Random) -> str:
    links = [f'<a href="https://{_name(rng)}.example/{n}">{n}</a>' for n in rng.sample(_NOUNS, 5)]
    note = rng.choice(
        ("keep in step with the other page", f"generated by {_name(rng)}", "navigation", f"{_name(rng)} begins here")
    )
    return f'<!-- {note} -->\n<p align="center">{" | ".join(links)}</p>\n<!-- <h3>{_name(rng)}</h3> -->'


def _log(rng: random.Random) -> str:
    lines = [
        f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}T{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:11Z "
        f"{rng.choice(('INFO', 'WARN', 'ERROR', 'DEBUG'))} {_name(rng)}[{rng.randint(100, 9999)}]: "
        f"{rng.choice(_NOUNS)} "
        f"{rng.choice(('ready', 'closed', 'ignored', 'denied', 'overridden', 'not found', 'reloaded'))}"
        for _ in range(rng.randint(3, 9))
    ]  # fmt: skip
    return "\n".join(lines)


def _licence(rng: random.Random) -> str:
    said = [line.format(n=rng.choice(_NOUNS)) for line in rng.sample(_LAW, rng.randint(3, 6))]
    text = "; ".join(said)
    if rng.random() < 0.3:
        return text.upper() + "."
    return f"License: {_name(rng).title()}-{rng.randint(1, 3)}.0\n " + ";\n ".join(said) + "."


def _copyrights(rng: random.Random) -> str:
    files = [
        f"       {_name(rng)}/{_name(rng)}.{rng.choice(('c', 'h', 'py', 'po'))}" for _ in range(rng.randint(3, 14))
    ]
    return (
        "Files:"
        + "\n".join(files)[6:]
        + f"\nCopyright: 19{rng.randint(80, 99)}-20{rng.randint(0, 25):02}, {_name(rng).title()} {_name(rng).title()}"
    )


def _changes(rng: random.Random) -> str:
    head = rng.choice(
        (f"## {_version(rng)}", f"{_name(rng)} ({_version(rng)}) unstable; urgency=medium", f"Version {_version(rng)}")
    )
    lines = [
        f"{rng.choice('*-')} {rng.choice(_VERBS)} the {rng.choice(_NOUNS)} of {_name(rng)} (#{rng.randint(1, 9000)})"
        for _ in range(rng.randint(3, 8))
    ]
    return "\n".join([head, "", *lines])


def _options(rng: random.Random) -> str:
    lines = [
        f"  --{n}-{m} {n.upper()}   {rng.choice(_VERBS)} the {m}; the default is {_name(rng)}"
        for n, m in [rng.sample(_NOUNS, 2) for _ in range(6)]
    ]
    return f"usage: {_name(rng)} [options] {rng.choice(_NOUNS)}\n\n" + "\n".join(lines)


def _records(rng: random.Random) -> str:
    rows = [
        {n: _name(rng), m: rng.randint(0, 999)} for n, m in [rng.sample(_NOUNS, 2) for _ in range(rng.randint(2, 6))]
    ]
    return str(rows) if rng.random() < 0.5 else str(rows).replace("'", '"')


def _contents(rng: random.Random) -> str:
    return "\n".join(
        f"{at}. {rng.choice(_NOUNS).title()} {rng.choice(_NOUNS)} {'.' * rng.randint(3, 30)} {at * 7}"
        for at in range(1, rng.randint(5, 14))
    )


_FORMS: tuple[Callable[[random.Random], str], ...] = (
    _metadata, _badges, _words, _table, _python, _html, _log, _licence, _copyrights, _changes, _options, _records,
    _contents, _c, _syllables, _letters, _repeats, _drawing, _metadata,
)  # fmt: skip
