"""Executes the newest task of the gateway, and prints it."""

import json
from urllib.request import Request, urlopen

GATEWAY = "http://127.0.0.1:8010"


def call(method: str, path: str) -> dict:
    with urlopen(Request(f"{GATEWAY}{path}", method=method), timeout=120) as response:
        return json.load(response)


newest = call("GET", "/tasks")["data"][0]
task = call("POST", f"/tasks/{newest['task_id']}/run")
print(json.dumps(task, ensure_ascii=False, indent=1))
