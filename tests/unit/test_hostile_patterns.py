"""No pattern that text from outside reaches reads a text again from each of its places."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from tests.support.pumped_texts import PumpedText, iter_pumped_texts

PACKAGES = (
    "agent.answers", "agent.core", "agent.execution", "agent.llm", "agent.net", "agent.planning", "agent.policy",
    "agent.run_context", "agent.runs", "agent.skills", "agent.subagents", "agent.text", "agent.tools",
    "gateway.access", "gateway.doors", "gateway.render", "gateway.features.documents.engine.grounded_answers",
    "gateway.features.documents.engine.search", "gateway.features.incident", "gateway.features.pipeline_builder",
    "gateway.features.protocols", "gateway.features.recipes", "gateway.features.schedules", "gateway.features.studio",
    "mcp_tools.builtin", "mcp_tools.client", "mcp_tools.server",
)  # fmt: skip
"""What reads requests, results, pages and replies in the gateway's process, where one pattern holds up everything:
Python's lock is not released within it, also in a thread. Parsers of documents have a process and a time limit."""
CHARS = 1_000
QUICK_SECONDS = 0.001
"""What is read in this time is not read again from each place."""
MAX_RATIO = 9
"""Four times the text takes four times as long; read again from each place, sixteen times."""
HEAD, PLACE, OWN = "reads a few characters", "is compared with one place", "reads a file of the operator"
BOUNDED: dict[str, str] = {
    "agent.answers.names:_BEHIND_ROLE": HEAD,
    "agent.llm.call_forms:_START": "reads at most MAX_SEARCHED_CHARS characters",
    "agent.llm.call_forms:_OPENING": "reads at most OPENING_CHARS characters",
    "agent.llm.call_markup:MARKUP": PLACE,
    "agent.llm.call_markup:_PARAMETER": PLACE,
    "agent.llm.call_markup:_FUNCTION_END": PLACE,
    "agent.llm.call_markup:_ARG_KEY": PLACE,
    "agent.llm.call_markup:_GLM_END": PLACE,
    "agent.llm.thoughts:_CHANNEL": "reads at most _CHANNEL_CHARS characters",
    "agent.llm.thoughts:THOUGHT": PLACE,
    "agent.llm.model_address:_VERSION": OWN,
    "agent.skills.names:_MCP": OWN,
    "agent.policy.guardrails.code_blocks:_HIDES_MARK": "reads at most MAX_LINE characters",
    "agent.policy.guardrails.classifier:_WEIGHT_LIST": OWN,
    "agent.policy.guardrails.link_reading:_BARE_MAILBOX": "reads a match of at most MAX_NAME characters",
    "agent.policy.guardrails.link_reading:_ANY_DOMAIN": PLACE,
    "agent.policy.guardrails.secrets:CREDENTIAL_FORMATS[1]": HEAD,
    "agent.policy.guardrails.secrets:CREDENTIAL_FORMATS[16]": HEAD,
    "agent.policy.guardrails.secrets:CREDENTIAL_FORMATS[25]": HEAD,
    "agent.text.language:_IGNORED_TEXT": "reads at most MAX_READ_CHARS characters",
    "agent.text.number_words:HALF_TAIL": PLACE,
    "agent.text.own_words:_SENTENCE_END": "reads at most OPENING_CHARS characters",
    "agent.text.requested_form:_ONLY_ANSWER": "reads a text without runs of spaces",
    "agent.text.rounding:_CURRENCY": "reads at most LOOK_BEHIND characters",
    "gateway.features.pipeline_builder.engine.subagents.document_kinds:_CODE_LINE": HEAD,
    "gateway.render.chat_markdown:_HTML_ENDS": PLACE,
    "gateway.render.chat_markdown:_HTML_ENDS[1]": PLACE,
    "gateway.render.chat_markdown:_HTML_ENDS[2]": PLACE,
    "gateway.render.chat_markdown:_HTML_ENDS[3]": PLACE,
    "gateway.render.chat_markdown:_HTML_ENDS[4]": PLACE,
    "mcp_tools.builtin.request_commands:_PLACE": "reads at most 200 characters",
    "mcp_tools.builtin.request_commands:_PLACES": "reads at most 200 characters",
    "mcp_tools.client.config:_VARIABLE": OWN,
}
"""Patterns that grow faster than their text, and why that does no harm."""


def iter_patterns(package: str) -> Iterator[tuple[str, re.Pattern[Any], frozenset[str]]]:
    """Yields each pattern of a package's modules with its place and the methods by which it is used."""
    for info in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        module = importlib.import_module(info.name)
        source = Path(str(module.__file__)).read_text("utf-8")
        for name, value in vars(module).items():
            patterns = _list_patterns(value)
            if not patterns or not re.search(rf"^{name}\b[^=\n]*=", source, re.MULTILINE):
                continue  # also one from another module
            used = re.findall(rf"\b{name}\.(match|fullmatch|search|finditer|findall|subn?|split)\b", source)
            for number, pattern in enumerate(patterns):
                yield f"{info.name}:{name}[{number}]".removesuffix("[0]"), pattern, frozenset(used)


def _list_patterns(value: object) -> list[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        return [value]
    parts = tuple(value.values()) if isinstance(value, dict) else value
    return [one for part in parts for one in _list_patterns(part)] if isinstance(parts, tuple) else []


def measure(pattern: re.Pattern[Any], methods: frozenset[str], text: str) -> float:
    """The seconds that the uses of a pattern take with a text: a search, if it is not only compared with a place."""
    subject: Any = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
    started = thread_time()
    if not methods or methods - {"match", "fullmatch"}:
        for _ in pattern.finditer(subject):
            pass
    for name in methods & {"match", "fullmatch"}:
        getattr(pattern, name)(subject)
    return thread_time() - started


def grows_faster(pattern: re.Pattern[Any], methods: frozenset[str], text: PumpedText) -> bool:
    if measure(pattern, methods, text.write(CHARS)) < QUICK_SECONDS:
        return False
    short, long = (min(measure(pattern, methods, text.write(chars)) for _ in range(2)) for chars in (CHARS, 4 * CHARS))
    return long > MAX_RATIO * max(short, QUICK_SECONDS / 2)


@pytest.mark.parametrize("package", PACKAGES)
def test_patterns_read_a_text_once(package: str) -> None:
    patterns = {place: (pattern, methods) for place, pattern, methods in iter_patterns(package)}
    assert {place for place in BOUNDED if place.startswith(f"{package}.")} <= patterns.keys()
    slow = {
        place: text
        for place, (pattern, methods) in patterns.items()
        if place not in BOUNDED
        for text in iter_pumped_texts(pattern)
        if grows_faster(pattern, methods, text)
    }
    assert not slow
