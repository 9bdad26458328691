"""The answers of tests/support/mcp_server_raw.py, and its server over stdio: `python mcp_raw_program.py FILE`.

It serves the script in FILE on standard input and output and writes each received line to FILE.log. It imports nothing
that has to be installed: tests start it dozens of times.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ECHO: dict[str, Any] = {"name": "echo", "inputSchema": {"type": "object"}}
ABSENT = "(absent)"
"""The value of a member that an answer leaves out, such as `jsonrpc`."""
PROGRESS_PAUSE_S = 0.2
"""The time between two reports of progress."""
DEFAULTS: dict[str, Any] = {
    "tools/list": {"result": {"tools": [ECHO]}},
    "tools/call": {"result": {"content": [{"type": "text", "text": "done"}]}},
}


def answer(message: Mapping[str, Any], script: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer to a message by the script: method, or `tools/call NAME`, to what stands beside `id`.

    A list in the script has one answer for each page, chosen by the cursor. Notifications have none.
    """
    if "id" not in message or "method" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        capabilities = script.get("capabilities", {"tools": {}})
        info = {"name": "raw", "version": "1"}
        version = params["protocolVersion"]
        own = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        return {**head, "result": {**own, **script.get("initialize", {})}}
    known = {**DEFAULTS, **script}
    reply = known.get(f"{method} {params.get('name')}", known.get(method))
    if isinstance(reply, list):
        reply = reply[int(params.get("cursor") or 0)]
    reply = reply or {"error": {"code": -32601, "message": "no such method"}}
    return {name: value for name, value in {**head, **reply}.items() if value != ABSENT}


def main() -> None:
    """Serves lines of JSON-RPC by the script, which may also say how.

    `start_s` delays the start, `sleep METHOD` an answer; so many reports of progress precede it as `progress METHOD`
    says. `first` is what it does at a first message other than `initialize`: `ends`, `hangs` or `ignores` it.
    `lines METHOD` are written as they are before the answer, and `then METHOD` changes the script after it. `indent` is
    that of each answer.
    """
    path = Path(sys.argv[1])
    script = json.loads(path.read_text())
    time.sleep(script.get("start_s", 0))
    log = path.with_suffix(".log").open("a", buffering=1)
    is_first = True
    for line in sys.stdin:
        log.write(f"{time.monotonic()} {line}")
        message = json.loads(line)
        if is_first and message.get("method") != "initialize" and "first" in script:
            if script["first"] == "ends":
                sys.exit(1)
            if script["first"] == "hangs":
                time.sleep(60)
            continue
        is_first = False
        time.sleep(script.get(f"sleep {message.get('method')}", 0))
        for number in range(script.get(f"progress {message.get('method')}", 0)):
            token = message["params"]["_meta"]["progressToken"]
            params = {"progressToken": token, "progress": number}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}), flush=True)
            time.sleep(PROGRESS_PAUSE_S)
        reply = answer(message, script)
        for text in script.get(f"lines {message.get('method')}", ()):
            sys.stdout.write(text)
            sys.stdout.flush()
        script |= script.get(f"then {message.get('method')}", {})
        if reply is not None:
            print(json.dumps(reply, indent=script.get("indent")), flush=True)


if __name__ == "__main__":
    main()
