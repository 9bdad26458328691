"""The prompts, one Markdown file each, and `render`. `{{name}}` in a file is a value; nothing else is special."""

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_FIELD = re.compile(r"\{\{(\w+)\}\}")


def render(prompt: str, /, **values: str) -> str:
    """The prompt of this name with its fields filled in.

    KeyError for a field without a value, TypeError for a value without a field: a prompt and its caller must agree.
    """
    parts = list(_load(prompt))
    fields = parts[1::2]
    unused = values.keys() - fields
    if unused:
        raise TypeError(f"prompt {prompt!r} has no field {', '.join(sorted(unused))}")
    parts[1::2] = [values[name] for name in fields]
    return "".join(parts)


def list_names() -> list[str]:
    """Every prompt there is."""
    return sorted(path.stem for path in _FOLDER.glob("*.md"))


@cache
def _load(name: str) -> tuple[str, ...]:
    """Returns the texts of a prompt with the names of the fields between them."""
    return tuple(_FIELD.split((_FOLDER / f"{name}.md").read_text("utf-8").strip()))
