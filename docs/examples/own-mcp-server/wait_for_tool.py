"""Waits until the gateway offers a tool, for at most a minute: `python wait_for_tool.py NAME`."""

import json
import sys
import time
from urllib.request import urlopen

for _ in range(60):
    with urlopen("http://127.0.0.1:8010/v1/tools", timeout=30) as response:
        if sys.argv[1] in json.dumps(json.load(response)):
            print(sys.argv[1], "is there")
            break
    time.sleep(1)
else:
    sys.exit(f"{sys.argv[1]} did not appear")
