"""A Redis server for tests, where there is one: keys of each test's own prefix, removed after it."""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

URL = os.environ.get("STEPGATE_TEST_REDIS", "redis://127.0.0.1:6379/0")
"""The server; set STEPGATE_TEST_REDIS to use another."""


@contextmanager
def own_prefix() -> Iterator[str]:
    """A prefix that nobody else uses. Skips the test, with the reason, where there is no server."""
    with redis.Redis.from_url(URL, socket_connect_timeout=2) as server:
        try:
            server.echo("?")
        except redis.RedisError as error:
            pytest.skip(f"no Redis at {URL}: {' '.join(str(error).split())[:120]}")
        prefix = f"stepgate-test-{secrets.token_hex(6)}"
        try:
            yield prefix
        finally:
            forget(prefix)


def keys(prefix: str) -> list[str]:
    """The keys of a prefix."""
    with redis.Redis.from_url(URL, decode_responses=True) as server:
        return sorted(str(key) for key in server.scan_iter(f"{prefix}:*"))


@contextmanager
def watched_words() -> Iterator[set[str]]:
    """The words of all commands that the server carries out meanwhile: some keys live for milliseconds."""
    words: set[str] = set()
    end = secrets.token_hex(6)
    with redis.Redis.from_url(URL, decode_responses=True) as server, server.monitor() as monitor:

        def read() -> None:
            while end not in words:
                words.update(str(monitor.next_command()["command"]).split())

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        yield words
        with redis.Redis.from_url(URL) as other:
            other.echo(end)
        reader.join(10)


def forget(prefix: str, ending: str = "") -> int:
    """Remove the keys of a prefix that end so, as if they had expired; how many there were."""
    wanted = [key for key in keys(prefix) if key.endswith(ending)]
    with redis.Redis.from_url(URL) as server:
        return int(server.delete(*wanted)) if wanted else 0
