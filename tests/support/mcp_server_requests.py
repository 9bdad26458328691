"""Somebody else's MCP server that asks its client for something in the middle of a call, and keeps a diary.

`python -m tests.support.mcp_server_requests DIARY [QUESTION]`: each message it gets is a line of the file DIARY, and it
asks the QUESTION, JSON. It is written by hand, for an SDK would not ask a client that has not declared that it answers.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

ASKS = {"ask_person": "elicitation/create", "ask_model": "sampling/createMessage", "ask_folders": "roots/list"}
TOOLS = (*ASKS, "hang", "chatter", "pid")


def main() -> None:
    """Serve lines of JSON-RPC, as the 2025 revisions have them."""
    diary = Path(sys.argv[1])
    asked: dict[str, Any] = {}
    for line in sys.stdin:
        message = json.loads(line)
        with diary.open("a", encoding="utf-8") as file:
            file.write(line)
        number, method = message.get("id"), message.get("method")
        if method is None:  # the answer to what was asked: the result of the call that made us ask
            _say(id=asked.pop(str(number)), result=_text(json.dumps(message.get("error") or message["result"])))
        elif method == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "asking", "version": "1"}
            _say(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            _say(id=number, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        elif method == "tools/call":
            _call(message, asked)
        elif number is not None:
            _say(id=number, error={"code": -32601, "message": "no such method"})


def _call(message: dict[str, Any], asked: dict[str, Any]) -> None:
    number, name = message["id"], message["params"]["name"]
    if name in ASKS:
        question = f"q{len(asked)}"
        asked[question] = number
        wants = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
        wants |= json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
        says = {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "h\u200bi\u001b[8m"}},
                {"role": "user", "content": [{"type": "tool_result", "toolUseId": "1", **_text("o\u200bk")}]},
            ],
            "maxTokens": 9,
        }
        says |= {"includeContext": "allServers", "systemPrompt": "Be\u200b brief."}
        params = {"elicitation/create": wants, "sampling/createMessage": says}.get(ASKS[name])
        _say(id=question, method=ASKS[name], **({"params": params} if params else {}))
    elif name == "chatter":
        for level in ("debug", "info", "error"):
            _say(method="notifications/message", params={"level": level, "data": f"{level}\u001b[31m words"})
        token = message["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            _say(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": "half"})
        _say(id=number, result=_text("said"))
    elif name == "pid":
        _say(id=number, result=_text(str(os.getpid())))


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
