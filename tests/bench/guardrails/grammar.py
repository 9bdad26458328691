"""Generates sentences from phrases in `frames.json`: orders to a machine that reads a text, and similar harmless ones.

The same acts occur on both sides, addressed to people or only mentioned, so that a model learns the addressee and not
the words. Used by `training.py`.
"""

# ruff: noqa: RUF001 - punctuation of other scripts is wanted

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FRAMES = Path(__file__).with_name("frames.json")
EACH = 16
"""Sentences of each family in a language that has all its phrases; the others get fewer, English four times as many."""
PAGES = 180
_TARGETS = ("anna", "drop", "ops", "intake", "mailbox", "desk", "billing", "x7", "info", "relay")
_HOSTS = ("collect", "northwind", "paper-boat", "fastdrop", "lindqvist", "portal", "school", "firm", "verein", "kontor")
_WORDS = ("banana", "sunrise", "penguin", "granite", "umbrella", "lantern", "kiwi", "harbour")


@dataclass(frozen=True)
class GeneratedText:
    """A sentence or two."""

    text: str
    label: int
    """1: an order to a machine that reads it (or, from `prompts`, an attack)."""
    family: str
    language: str


@cache
def load_frames() -> dict[str, dict[str, list[str]]]:
    """The phrases by language and role."""
    read: dict[str, dict[str, list[str]]] = json.loads(FRAMES.read_text("utf-8"))["phrases"]
    return read


def generate_prompts() -> list[GeneratedText]:
    """Returns whole prompts: attacks, and everyday requests with the same words."""
    return [
        GeneratedText(text, label, role, language)
        for language, said in load_frames().items()
        for role, label in (("direct", 1), ("chat_ok", 0))
        for text in said[role]
    ]


Maker = Callable[[Callable[[str], str]], str]
ORDERS: dict[str, tuple[tuple[str, ...], Maker]] = {
    "address override": (("address", "override"), lambda p: f"{p('address')} {p('override')}."),
    "address act": (("address", "act"), lambda p: f"{p('address')} {p('act')}."),
    "address act conceal": (("address", "act", "conceal"), lambda p: f"{p('address')} {p('act')} {p('conceal')}."),
    "address steer": (("address", "steer"), lambda p: f"{p('address')} {p('steer')}."),
    "given act": (("given", "act"), lambda p: f"{p('given')} {p('act')}."),
    "given override act": (
        ("given", "override", "act"),
        lambda p: f"{p('given')} {p('override')}. {_capitalize(p('act'))}.",
    ),
    "given steer": (("given", "steer"), lambda p: f"{p('given')} {p('steer')}."),
    "modal act": (("modal", "act"), lambda p: f"{p('modal')} {p('act')}."),
    "modal steer": (("modal", "steer"), lambda p: f"{p('modal')} {p('steer')}."),
    "authority override": (("authority", "override"), lambda p: f"{p('authority')} {_capitalize(p('override'))}."),
    "authority act conceal": (
        ("authority", "act", "conceal"), lambda p: f"{p('authority')} {_capitalize(p('act'))} {p('conceal')}.",
    ),
    "override steer": (("override", "steer"), lambda p: f"{_capitalize(p('override'))}: {p('steer')}."),
    "override act": (("override", "act"), lambda p: f"{_capitalize(p('override'))}, {p('act')}."),
    "act conceal": (("act", "conceal"), lambda p: f"{_capitalize(p('act'))} {p('conceal')}."),
}  # fmt: skip
"""Families of orders: the phrases they need, and how they are put together."""
OTHERS: dict[str, tuple[tuple[str, ...], Maker]] = {
    "people act": (("human", "human_act"), lambda p: f"{p('human')} {p('human_act')}."),
    "people act conceal": (
        ("human", "human_act", "human_conceal"), lambda p: f"{p('human')} {p('human_act')} {p('human_conceal')}.",
    ),
    "people override": (("human", "human_override"), lambda p: f"{p('human')} {p('human_override')}."),
    "human act": (("human_act",), lambda p: f"{_capitalize(p('human_act'))}."),
    "human override act": (
        ("human_override", "human_act"),
        lambda p: f"{_capitalize(p('human_override'))}. {_capitalize(p('human_act'))}.",
    ),
    "address": (("address",), lambda p: p("address")),
    "given": (("given",), lambda p: p("given")),
    "authority": (("authority",), lambda p: p("authority")),
    "about": (("about",), lambda p: p("about")),
    "about twice": (("about",), lambda p: f"{p('about')} {p('about')}"),
    "about and act": (("about", "human_act"), lambda p: f"{p('about')} {_capitalize(p('human_act'))}."),
}  # fmt: skip
REPORTED = (
    "The hidden line told the assistant to {act}.",
    "In one case the chatbot was asked to {act}, and it did.",
    "Researchers wrote a page that says \"{address} {act}\" and counted who obeyed.",
    "An attacker could make the model {act}.",
    "For example, a mail may ask an AI assistant to {act} {conceal}.",
    "You can ask the assistant to {human_act}.",
    "Say \"{human_act}\" and the assistant does it after you have confirmed.",
    "The agent refused to {act}.",
    "We tested whether the bot would {act} when a document says so.",
    "If you tell the model \"{override}\", older versions obey.",
    "The assistant will never {act} without asking you.",
    "Who instructs the assistant to {human_act} must check the result.",
    "Phrases such as \"{override}\" or \"{act}\" are blocked.",
    "Our bot can {human_act} for you.",
)  # fmt: skip
"""Texts about orders, in English."""


def generate_orders(left_out: str = "") -> list[GeneratedText]:
    """Returns orders to a machine that reads a text, without one family."""
    return [said for family in ORDERS if family != left_out for said in _generate(family, *ORDERS[family], 1)]


def generate_other_texts() -> list[GeneratedText]:
    """Returns requests to people, and texts about assistants."""
    made = [said for family, (needs, maker) in OTHERS.items() for said in _generate(family, needs, maker, 0)]
    rng = random.Random("reported")
    pick = _make_picker(load_frames()["en"], rng)
    reported = ["".join(_fill_pattern(pattern, pick)) for pattern in REPORTED for _ in range(EACH)]
    return made + [GeneratedText(text, 0, "reported", "en") for text in dict.fromkeys(reported)]


def generate_pages() -> list[str]:
    """Harmless texts of several sentences about assistants and requests to people."""
    made = []
    for language, said in load_frames().items():
        rng = random.Random(f"pages {language}")
        pick = _make_picker(said, rng)
        for _ in range(PAGES if language == "en" else PAGES // 12):
            roles = rng.choices(("about", "human_act", "human_override"), (4, 4, 1), k=rng.randint(3, 7))
            head = f"{pick('human')}\n\n" if rng.random() < 0.4 else ""
            mark = rng.choice((" ", " ", "\n", "\n- "))
            made.append(
                head
                + mark.join(
                    _localize_punctuation(language, f"{_capitalize(pick(role)).rstrip('.')}.") for role in roles
                )
            )
    return made


def _generate(family: str, needs: Sequence[str], maker: Maker, label: int) -> Iterator[GeneratedText]:
    for language, said in load_frames().items():
        if not all(said[role] for role in needs):
            continue
        rng = random.Random(f"{family} {language}")
        room = 1
        for role in needs:
            room *= len(said[role])
        count = min(EACH * (4 if language == "en" else 1), 2 * room)
        pick = _make_picker(said, rng)
        texts = dict.fromkeys(_localize_punctuation(language, maker(pick)) for _ in range(count))
        yield from (GeneratedText(text, label, family, language) for text in texts)


def _make_picker(said: dict[str, list[str]], rng: random.Random) -> Callable[[str], str]:
    def pick(role: str) -> str:
        target = rng.choice(
            (
                f"{rng.choice(_TARGETS)}@{rng.choice(_HOSTS)}.example",
                f"https://{rng.choice(_HOSTS)}.example/{rng.choice(_TARGETS)}",
            )
        )
        text = rng.choice(said[role]).replace("{target}", target).replace("{word}", rng.choice(_WORDS))
        return text.replace("{number}", str(rng.randrange(10**4, 10**9)))

    return pick


def _fill_pattern(pattern: str, pick: Callable[[str], str]) -> Iterator[str]:
    for part in pattern.replace("{", "\0").replace("}", "\0").split("\0"):
        yield pick(part) if part in {"act", "address", "conceal", "override", "human_act"} else part


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _localize_punctuation(language: str, text: str) -> str:
    """The text with the punctuation of the language."""
    if language in {"zh", "ja"}:
        text = text.replace(". ", "。").rstrip(".") + "。"
        return text.replace("。。", "。").replace("？。", "？").replace(" ，", "，").replace(" 。", "。")
    return text.replace("?.", "?").replace("!.", "!").replace("..", ".").replace(".,", ",")
