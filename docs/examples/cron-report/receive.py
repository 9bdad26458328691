"""Waits for one post of a webhook and prints it: `python receive.py PORT [COMMAND...]` runs the command meanwhile."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Receiver(BaseHTTPRequestHandler):
    """Prints the body of a post and answers 204: any status of 2xx means that it was accepted."""

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print(event["type"], event["data"]["answer"], sep="\n", flush=True)
        self.send_response(204)
        self.end_headers()


server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
server.timeout = 60
command = subprocess.Popen(sys.argv[2:]) if sys.argv[2:] else None
server.handle_request()
if command is not None:
    command.wait()
