"""The roles of the suites' arguments, as an operator writes them into `mcp_servers.json`."""

from collections.abc import Iterable
from typing import Any

ROLES = {
    **dict.fromkeys(
        ("recipient", "recipients", "participants", "channel", "url", "user", "user_email", "password", "email", "to"),
        "where",
    ),
    "cc": "where",
    "bcc": "where",
    "amount": "amount",
    **dict.fromkeys(
        ("subject", "body", "content", "title", "description", "filename", "attachments", "location"), "content"
    ),
    **dict.fromkeys(("file_id", "event_id", "email_id", "id"), "id"),
}
"""What the arguments of these names say. Any other is `other`."""


def find_roles(tools: Iterable[Any]) -> dict[str, str]:
    """The roles by `tool.argument`, of arguments that the tools have."""
    found = {}
    for tool in tools:
        for name in tool.parameters.model_json_schema().get("properties", {}):
            if name in ROLES:
                found[f"{tool.name}.{name}"] = ROLES[name]
    return found
