"""The pictures of the web page that the documentation shows."""

import re
from functools import cache
from typing import Final

from tests.support.processes import ROOT

IMAGES: Final = ROOT / "docs" / "images"


@cache
def list_shown_pictures() -> frozenset[str]:
    """Names of the files in `docs/images` that a page of the documentation shows."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return frozenset(
        name for page in pages for name in re.findall(r"\]\([^)\s]*images/([\w.-]+)\)", page.read_text("utf-8"))
    )
