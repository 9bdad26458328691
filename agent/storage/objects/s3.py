"""`S3ObjectStore`: objects in a bucket of an S3-compatible store, through `obstore` (extra `scale`)."""

import io
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from agent.core.errors import NotFoundError, StoreError
from agent.storage.objects.folder import open_for_writing, to_store_error
from agent.storage.objects.port import ObjectInfo, validate_object_name

if TYPE_CHECKING:
    from obstore.store import ClientConfig

PIECE_BYTES = 8 * 1024 * 1024
"""Size of the pieces in which a file is sent and read: S3 takes 10,000 pieces, which makes 80 GB."""
PIECES_AT_ONCE = 4
"""Pieces of one file under way: 32 MB of memory."""
RETRY_SECONDS = 10
"""How long a request that fails is repeated. What a user waits for must fail while they still wait."""
_CLIENT: "ClientConfig" = {"connect_timeout": "5s", "read_timeout": "30s", "timeout": "1h"}
_REASON = re.compile(r"<Code>([A-Za-z]+)</Code>|(HTTP error: [^\n]{1,200})|(status code: \d+ [A-Za-z ]+)")


class S3ObjectStore:
    """Implements `ObjectStore` in `bucket`, below `prefix`.

    Without a key and secret, those of the environment are used (`AWS_ACCESS_KEY_ID` ..., or the machine's role).
    Nothing is requested before the first call.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        endpoint: str | None = None,
        region: str | None = None,
        key_id: str | None = None,
        secret: str | None = None,
    ) -> None:
        options: dict[str, Any] = {
            "prefix": prefix or None,
            "endpoint": endpoint,
            "region": region,
            "access_key_id": key_id,
            "secret_access_key": secret,
        }
        client: ClientConfig = {**_CLIENT, "allow_http": endpoint is not None and endpoint.startswith("http://")}
        self._store = S3Store(
            bucket,
            client_options=client,
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            **{name: value for name, value in options.items() if value is not None},
        )
        self._location = f"s3://{bucket}/{prefix}".rstrip("/")

    @property
    def location(self) -> str:
        """See `ObjectStore.location`."""
        return self._location

    @property
    def is_shared(self) -> bool:
        """See `ObjectStore.is_shared`."""
        return True

    def put(self, name: str, path: Path) -> None:
        """See `ObjectStore.put`. S3 shows an object once its last piece has arrived and the upload is completed."""
        validate_object_name(name)
        try:
            file = path.open("rb")
        except OSError as error:
            raise to_store_error(error, str(path)) from error
        with file, self._translate_errors(name):
            obstore.put(
                self._store,
                name,
                file,
                chunk_size=PIECE_BYTES,
                max_concurrency=PIECES_AT_ONCE,
            )

    def open(self, name: str) -> BufferedReader:
        """See `ObjectStore.open`."""
        with self._translate_errors(name):
            reader = obstore.open_reader(self._store, validate_object_name(name), buffer_size=PIECE_BYTES)
        return BufferedReader(_RawObject(self, name, reader), PIECE_BYTES)

    def fetch(self, name: str, path: Path) -> None:
        """See `ObjectStore.fetch`."""
        with self._translate_errors(name):
            reply = obstore.get(self._store, validate_object_name(name))
            with open_for_writing(path) as out:
                for piece in reply.stream(min_chunk_size=PIECE_BYTES):
                    out.write(piece)

    def delete(self, name: str) -> None:
        """See `ObjectStore.delete`."""
        try:
            with self._translate_errors(name):
                obstore.delete(self._store, validate_object_name(name))
        except NotFoundError:
            pass

    def delete_all(self, prefix: str) -> None:
        """See `ObjectStore.delete_all`."""
        with self._translate_errors(prefix):
            for page in obstore.list(self._store, validate_object_name(prefix)):
                obstore.delete(self._store, [one["path"] for one in page])

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        with self._translate_errors(prefix):
            for page in obstore.list(self._store, validate_object_name(prefix)):
                for one in page:
                    yield ObjectInfo(one["path"], one["size"])

    def check(self, *, writes: bool = False) -> str:
        """See `ObjectStore.check`."""
        name = f"check/{secrets.token_hex(8)}"
        with self._translate_errors(name):
            if writes:
                obstore.put(self._store, name, b"")
                obstore.delete(self._store, name)
            else:
                next(iter(obstore.list(self._store, name)), None)
        return self.location

    @contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:  # obstore's own error for a missing object is one too
            missing = f"{name} is not in {self.location}"
            if "NoSuchBucket" in str(error):
                raise StoreError(f"{self.location} cannot be used: there is no such bucket", agent_id="store") from None
            raise NotFoundError(missing, agent_id="store") from error
        except BaseError as error:
            # The library's text has the request's address and may quote its body: only the reason is passed on.
            raise StoreError(
                f"{self.location} cannot be used: {_find_reason(error)}; check AGENT_OBJECTS_URL, "
                "AWS_ENDPOINT_URL_S3 and the credentials, then try again",
                agent_id="store",
            ) from None
        except OSError as error:
            raise to_store_error(error, self.location) from error


class _RawObject(io.RawIOBase):
    """Reads an object through `obstore`, for `io.BufferedReader`."""

    def __init__(self, store: S3ObjectStore, name: str, reader: "obstore.ReadableFile") -> None:
        self._owner = store
        self._name = name
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._owner._translate_errors(self._name):
            data = bytes(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._reader.seek(offset, whence)

    def tell(self) -> int:
        return self._reader.tell()


def _find_reason(error: BaseException) -> str:
    match = _REASON.search(str(error))
    return next(part for part in match.groups() if part) if match else type(error).__name__
