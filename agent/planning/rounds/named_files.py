"""The files of the ground that a text names."""

import re
from typing import Final

_LISTED: Final = "- "
"""Before the name of each file in the ground."""


def list_named_files(text: str, ground: str) -> list[str]:
    """The paths of the files that the ground lists and the text names: it lists those first that the request names.
    `Node.js` and `os.path` are no such files."""
    paths = [line.removeprefix(_LISTED) for line in ground.splitlines() if line.startswith(_LISTED)]
    folded = text.casefold()
    names = {path: path.rpartition("/")[2].casefold() for path in paths}
    return [
        path for path, name in names.items() if "." in name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded)
    ]
