"""Decides what waits for approval: `python decide.py TOOL...` approves plans of these tools only, rejects others."""

import json
import sys
from urllib.request import Request, urlopen

GATEWAY = "http://127.0.0.1:8010"
ALLOWED = set(sys.argv[1:])


def call(method: str, path: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{GATEWAY}{path}", data, {"content-type": "application/json"}, method=method)
    with urlopen(request, timeout=60) as response:
        return json.load(response)


for waiting in call("GET", "/v1/approvals")["data"]:
    tools = [item["tool"] for item in waiting["items"]]
    run, ids = f"/v1/runs/{waiting['run_id']}", {"approvals": [waiting["id"]]}
    if not set(tools) <= ALLOWED:
        call("POST", f"{run}/reject", ids)
        print("rejected", *tools)
        continue
    call("POST", f"{run}/approve", ids)
    # The run goes on at once; its events end when it does.
    with urlopen(f"{GATEWAY}{run}/events", timeout=60) as events:
        events.read()
    print("approved", *tools, end=": ")
    print(call("GET", run)["response"]["response"])
