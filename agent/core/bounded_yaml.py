"""Reads YAML that people and programs write, within bounds: a small text can stand for a huge or endless value."""

from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml is ten times faster; not every build of PyYAML has it. It recurses without a limit: check the depth first."""
MAX_BYTES = 256 * 1024
"""Largest text, in bytes of UTF-8. The largest room that was ever seen has 20 KB."""
MAX_DEPTH = 20
"""Most levels of nested maps and lists. PyYAML recurses once a level."""
MAX_NODES = 20_000
"""Most values after aliases are replaced by what they stand for: a few lines can stand for billions."""


class YamlError(ValueError):
    """Raised for a text that is not YAML, exceeds a bound or holds no map. The message is one line."""


def load_yaml_mapping(text: str) -> dict[str, Any]:
    """The map of a YAML document; its keys are texts. Raises `YamlError`."""
    _check_size(text)
    try:
        check_structure(text)
        value = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-45
        if isinstance(error, YamlError):
            raise
        raise YamlError(f"not valid YAML: {' '.join(str(error).split())[:500]}") from error
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise YamlError("the file must contain `key: value` lines")
    return value


def load_trusted_yaml(text: str) -> Any:
    """The value of a document that is part of the program, such as the evaluation's tasks: read fast, without bounds.
    Raises `yaml.YAMLError`."""
    return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader


def _check_size(text: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise YamlError(f"the text is too large: at most {MAX_BYTES:,} bytes are read")


def check_structure(text: str) -> None:
    """Raises `YamlError` for a document that is too deep or too large after its aliases are replaced, and
    `yaml.YAMLError` for one that is not YAML."""
    count = _NodeCount()
    for event in yaml.parse(text, Loader=_Loader):
        count.add_event(event)


class _NodeCount:
    """Counts the values of a document from the parser's events, without recursion."""

    def __init__(self) -> None:
        self._open_sizes = [0]
        """The number of values in each open collection, the document first."""
        self._open_anchors: list[str | None] = []
        self._anchor_sizes: dict[str | None, int] = {}
        """How many values each alias stands for. An anchor whose collection is still open is missing."""

    def add_event(self, event: yaml.Event) -> None:
        """Counts one event."""
        if isinstance(event, yaml.CollectionStartEvent):
            self._open_sizes.append(1)
            self._open_anchors.append(event.anchor)
            self._anchor_sizes.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._add_value(self._open_sizes.pop(), self._open_anchors.pop())
        elif isinstance(event, yaml.ScalarEvent):
            self._add_value(1, event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchor_sizes:
                raise YamlError(f"the alias *{event.anchor} names a value that contains it, or that is not defined")
            self._add_value(self._anchor_sizes[event.anchor], None)
        if len(self._open_sizes) > MAX_DEPTH:
            raise YamlError(f"the text is nested more than {MAX_DEPTH} levels deep")

    def _add_value(self, size: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchor_sizes[anchor] = size
        self._open_sizes[-1] += size
        if self._open_sizes[-1] > MAX_NODES:
            raise YamlError(f"the text expands to more than {MAX_NODES:,} values")
