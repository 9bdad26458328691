"""An MCP server of 2026-07-28 that leaves out fields the revision requires: `resultType`, `ttlMs`, `cacheScope`.

`python -m tests.support.mcp_server_terse`. It is written by hand, because an SDK would add them.
"""

import json
import sys
from typing import Any


def main() -> None:
    """Serve lines of JSON-RPC."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """The result without the fields, or an error for what is not known."""
    match message["method"]:
        case "server/discover":
            info = {"name": "terse", "version": "1"}
            return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            tool = {"name": "shout", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
            return {"result": {"tools": [tool]}}
        case "tools/call":
            text = message["params"]["arguments"]["text"].upper()
            return {"result": {"content": [{"type": "text", "text": text}]}}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


if __name__ == "__main__":
    main()
