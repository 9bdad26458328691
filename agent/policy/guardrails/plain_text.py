"""Shows the words of models and tools inside our own Markdown so that no part of them is live.

A question to a person is rendered by chat pages, which load images and make links before anybody has decided.
"""

import re
from typing import Final

from agent.policy.guardrails.drawn_code import relabel_fences

_SPECIAL: Final = re.compile(
    r"[\\`*\[\]<>!|$]|(?<!\w)_|_(?!\w)|~(?=~)|&(?=#?\w+;)|(?<=\w)://|(?<=www)\.|(?<=\w)@(?=\w)", re.IGNORECASE
)
_BLOCK_START: Final = re.compile(r"^([-=+#:]|\d+(?=[.)]))")
_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u115f\u1160\u17b4\u17b5\u200b\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    r"\U000e01f0-\U000e0fff]|(?<![\u3400-\u9fff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    r"|(?<![\u1820-\u18aa])[\u180b-\u180f]|(?<![\u2801-\u28ff])\u2800|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"
    r"|(?<=[\u061c\u200c-\u200f])[\u061c\u200c-\u200f]|(?<=[!-~])[\u061c\u200c-\u200f](?=[!-~])|\r(?!\n)"
)
"""Controls but tab and newline, spaces without width, fillers, tags, and what turns text around. Of joiners, direction
marks, and selectors of a variant, which scripts and emoji need, only what these do not need counts: a row, a joiner or
mark between ASCII characters, a selector or a blank behind what is not of its script. They can spell a text that nobody
sees.
"""
_LIVE: Final = re.compile(r"(?<=!)(?=\[)|(?<=\])(?=[(:])|(?<=<)(?=[A-Za-z/!?])")
"""Between the two marks that every image, link, definition, tag and `<address>` of Markdown needs side by side."""


def remove_live_parts(text: str) -> str:
    """Markdown without images, links and tags: a space parts their marks. Addresses that are written out stay."""
    text = _LIVE.sub(" ", text)
    return relabel_fences(text) if "```" in text or "~~~" in text else text


def show_unseen(text: str) -> str:
    """A text in which characters that hide or turn others are written out, as `\\u{202e}`."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_write_out, text)


def escape_markdown(text: str) -> str:
    """A text that Markdown shows as it is, on one line: no images, links, tags, headings or lists."""
    line = " ".join(show_unseen(text).split())
    return _BLOCK_START.sub(_escape_start, _SPECIAL.sub(_escape, line))


def format_literal(text: str) -> str:
    """A text as inline code on one line, in which nothing is live."""
    line = " ".join(show_unseen(text).split()) or " "
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _escape(found: re.Match[str]) -> str:
    # A zero-width space keeps renderers from making a link of a bare address.
    return {"://": ":\u200b//", ".": ".\u200b", "@": "@\u200b"}.get(found[0], f"\\{found[0]}")


def _escape_start(found: re.Match[str]) -> str:
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"


def _write_out(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found[0]):04x}}}"
