"""Maps the tool names of other systems, as skills written for them use them, to ours."""

import re

_FOREIGN = {
    "askuserquestion": ("ask_user",),
    "fetch": ("web_fetch",),
    "glob": ("list_files", "search_files"),  # we have two tools for finding files by name
    "grep": ("search_files",),
    "ls": ("list_files",),
    "read": ("read_file",),
    "view": ("read_file",),
    "webfetch": ("web_fetch",),
}
_MCP = re.compile(r"^mcp__(?P<server>[A-Za-z0-9_-]+?)__(?P<tool>[A-Za-z0-9_-]+)$")
_TOOL_NAME = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


def map_tool_name(declared: str) -> tuple[str, ...]:
    """Our names for a declared tool; empty if there are none. Drops patterns such as `(docs/*)` in
    `Read(docs/*)`.
    """
    name = declared.split("(", 1)[0].strip()
    if (match := _MCP.match(name)) is not None:
        return (f"{match['server']}__{match['tool']}".replace("-", "_").lower(),)
    mapped = _FOREIGN.get(name.lower())
    if mapped is not None:
        return mapped
    return (name,) if _TOOL_NAME.match(name) else ()
