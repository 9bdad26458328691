"""Prompts, one Markdown file each. `{{name}}` in a file is a value; nothing else is special.

The kernel's are in `agent/prompts/`; a feature has a `PromptSource` of its own.
"""

import re
from pathlib import Path
from typing import Final

_FIELD = re.compile(r"\{\{(\w+)\}\}")
SEPARATOR: Final = "\n=> "
"""Between an example and its reply."""


class PromptSource:
    """The prompts in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # By name: making, hashing and comparing a path takes more than filling a prompt in.
        self._parts: dict[str, tuple[str, ...]] = {}

    def render(self, prompt: str, /, **values: str) -> str:
        """The prompt of this name with its fields filled in.

        Raises `KeyError` for a field without a value, `TypeError` for a value without a field: a prompt and its caller
        must agree. Raises `FileNotFoundError` if there is no such prompt.
        """
        loaded = self._parts.get(prompt)
        if loaded is None:
            loaded = self._parts[prompt] = _load(self._folder / f"{prompt}.md")
        parts = list(loaded)
        fields = parts[1::2]
        unused = values.keys() - fields
        if unused:
            raise TypeError(f"prompt {prompt!r} has no field {', '.join(sorted(unused))}")
        parts[1::2] = [values[name] for name in fields]
        return "".join(parts)

    def read_examples(self, prompt: str) -> list[tuple[str, str]]:
        """The examples in the prompt of this name, each with its reply. An empty line parts two of them, and `=> `
        begins a reply. Raises `FileNotFoundError` if there is no such prompt."""
        examples = (example.partition(SEPARATOR) for example in self.render(prompt).split("\n\n"))
        return [(asking, reply) for asking, _, reply in examples]

    def list_names(self) -> list[str]:
        """The names of all prompts."""
        return sorted(path.stem for path in self._folder.glob("*.md"))


def _load(path: Path) -> tuple[str, ...]:
    """The texts of a prompt with the names of the fields between them."""
    return tuple(_FIELD.split(path.read_text("utf-8").strip()))


PROMPTS = PromptSource(Path(__file__).parent.parent / "prompts")
render = PROMPTS.render
read_examples = PROMPTS.read_examples


_TAG = re.compile(
    r"<(?=\s*+/\s*+(?:input|output|data)\b|"
    r"\s*+/?\s*+(?:history|ground|memory|earlier_results|results?|failed|replan|instructions|user_request|task|intent|evidence"
    r"|answer|claim|sources|feedback|problems)\b)",
    re.IGNORECASE,
)
"""The opening of a tag that our prompts delimit blocks with. The first three are HTML's too: only their ends matter."""


_SPACE = re.compile(r"\s")
_TURNS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Controls, overrides of the direction of text, and tags, which nobody sees."""


def format_block(tag: str, text: str, /, **attributes: str) -> str:
    """Wraps `text` in a block; tags of blocks inside it are made inert, however they are written."""
    labels = "".join([f' {key}="{_format_attribute(value)}"' for key, value in attributes.items() if value])
    return f"<{tag}{labels}>\n{_make_inert(text)}\n</{tag}>"


def quote_inline(text: str) -> str:
    """A few words of a model or of a result within a sentence of a prompt: on one line, without tags of blocks."""
    return _make_inert(_TURNS.sub("", _SPACE.sub(" ", text)))


def _make_inert(text: str) -> str:
    """The text with the tags of blocks broken."""
    return _TAG.sub(lambda _: "<\\", text)


def _format_attribute(value: str) -> str:
    """A name from outside on one line, without characters that end lines or turn text around."""
    return _TURNS.sub("", _SPACE.sub(" ", value)).replace('"', "'").replace("<", "").replace(">", "")[:200]
