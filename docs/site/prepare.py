"""Copies the documentation into a folder for `make docs-site`: `docs/` and SECURITY.md, with links among them.

In the repository SECURITY.md is beside `docs/`; a site has only what is in its folder.
"""

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = ("site", "__pycache__")


def prepare(target: Path) -> None:
    """Writes the folder anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.copy(ROOT / "SECURITY.md", target)
    for page in target.rglob("*.md"):
        up = os.path.relpath(target, page.parent).replace(os.sep, "/")
        text = page.read_text("utf-8")
        moved = re.sub(r"\]\((?:\.\./)+(SECURITY\.md)", rf"]({up}/\1", text)
        if page.name == "SECURITY.md":
            moved = moved.replace("](docs/", "](")
        page.write_text(moved, "utf-8")


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
