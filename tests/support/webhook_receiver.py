"""A real server that receives webhooks: keeps every post with its headers, and answers with given statuses."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic, sleep
from typing import Any, Self


@dataclass(frozen=True)
class Post:
    """One post as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        """The `data` of the body."""
        found: dict[str, Any] = json.loads(self.body)["data"]
        return found


class WebhookReceiver:
    """Answers the posts with `statuses` in turn, then 204. A status of 0 stays silent for a while."""

    def __init__(self, *statuses: int, headers: Sequence[tuple[str, str]] = (), port: int = 0) -> None:
        self.posts: list[Post] = []
        self.statuses = list(statuses)
        self.headers = headers
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.posts.append(Post(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                if not status:
                    sleep(3)
                    return
                self.send_response(status)
                for name, value in receiver.headers:
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            do_GET = do_POST  # noqa: N815 - named by the library

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}/hook"

    def wait_for(self, count: int, deadline_s: float = 20.0) -> list[Post]:
        """The posts, once there are `count`; AssertionError when they do not come."""
        until = monotonic() + deadline_s
        while len(self.posts) < count:
            assert monotonic() < until, f"{len(self.posts)} of {count} posts"
            sleep(0.02)
        return self.posts

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
