"""`KeyWatch`: ends what a key has left open, such as an event stream, soon after the key is revoked.

A request is checked when it comes; a stream would go on for hours with a key that no longer counts.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import Any, Final, TypeVar

from starlette.types import Message, Receive

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AuthError, StoreError
from agent.storage.api_keys import KeyStore

log = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
"""Seconds between two checks of a key, which another process may have revoked."""
_END: Final = object()
T = TypeVar("T")


class KeyWatch:
    """Watches one key of the store for one request or stream."""

    def __init__(self, keys: KeyStore, key_id: str) -> None:
        self._keys = keys
        self._key_id = key_id

    async def follow(self, items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Yields the items. Raises `AuthError` as soon as the key is found to be revoked, deleted or expired."""
        refused: asyncio.Future[Any] = asyncio.ensure_future(self._wait_until_refused())
        following: asyncio.Future[Any] = asyncio.ensure_future(anext(items, _END))
        try:
            while True:
                await asyncio.wait([following, refused], return_when=asyncio.FIRST_COMPLETED)
                if refused.done():
                    raise refused.result()
                item = following.result()
                if item is _END:
                    return
                yield item
                following = asyncio.ensure_future(anext(items, _END))
        finally:
            refused.cancel()
            await cancel_and_wait(following)
            await items.aclose()

    @contextlib.asynccontextmanager
    async def wrap_receive(self, receive: Receive) -> AsyncGenerator[Receive, None]:
        """A `receive` that says that the client has left as soon as the key is refused, for servers that end their
        streams then.
        """
        refused = asyncio.ensure_future(self._wait_until_refused())

        async def receive_or_leave() -> Message:
            receiving = asyncio.ensure_future(receive())
            try:
                await asyncio.wait([receiving, refused], return_when=asyncio.FIRST_COMPLETED)
                return {"type": "http.disconnect"} if refused.done() else receiving.result()
            finally:
                if not receiving.done():
                    await cancel_and_wait(receiving)

        try:
            yield receive_or_leave
        finally:
            refused.cancel()

    async def _wait_until_refused(self) -> AuthError:
        """Waits until the key no longer counts. While the store is down, it counts."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self._keys.get_valid(self._key_id)
            except AuthError as error:
                log.info("the open streams and sessions of the key %s are closed: %s", self._key_id, error.message)
                return error
            except StoreError as error:
                log.warning("the key %s is not checked: %s", self._key_id, error.message)
