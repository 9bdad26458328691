"""The peers' half of `reading.py`: reads files and returns their text. Standard library besides the peer itself.

In comes the peer's name and a JSON list of paths; out goes a line of JSON: the text by path, for files it could read.
"""

import json
import sys
from collections.abc import Callable


def make_reader(name: str) -> Callable[[str], str]:
    """The function that reads a file's text."""
    if name == "markitdown":
        from markitdown import MarkItDown

        converter = MarkItDown(enable_plugins=False)
        return lambda path: str(converter.convert(path).text_content)
    from kreuzberg import ExtractionConfig, extract_file_sync

    config = ExtractionConfig(use_cache=False, output_format="markdown")
    return lambda path: str(extract_file_sync(path, config=config).content)


def main() -> None:
    """Read each file once."""
    read = make_reader(sys.argv[1])
    told = {}
    for path in json.load(sys.stdin):
        try:
            told[path] = read(path)
        except Exception as error:  # noqa: BLE001 - whatever it raises, it has not read the file
            print(f"{path}: {type(error).__name__}", file=sys.stderr)
    print(json.dumps(told))


main()
