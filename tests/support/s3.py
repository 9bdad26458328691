"""An S3-compatible server for tests (moto), with a bucket and a client that looks at what is in it."""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3  # type: ignore[import-untyped]
from moto.server import ThreadedMotoServer

KEY_ID, SECRET = "key-of-the-tests", "secret-of-the-tests"


@dataclass
class S3Server:
    """A running server. `stop` ends it before the test does."""

    server: ThreadedMotoServer
    url: str
    client: Any
    bucket: str

    @property
    def keys(self) -> list[str]:
        """The keys of every object in the bucket."""
        return [one["Key"] for one in self.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])]

    @property
    def unfinished(self) -> list[Any]:
        """Uploads in pieces that were begun and neither completed nor taken back."""
        return list(self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", []))

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a gateway that uses it."""
        return {
            "objects_url": f"s3://{self.bucket}/gate",
            "objects_endpoint": self.url,
            "objects_region": "us-east-1",
            "objects_key_id": KEY_ID,
            "objects_secret": SECRET,
        }

    def stop(self) -> None:
        """End the server; ending it again does nothing."""
        if self.server is not None:
            self.server.stop()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server on a free port, with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET
    )
    bucket = f"tests-{secrets.token_hex(6)}"  # the servers of one process share their buckets
    client.create_bucket(Bucket=bucket)
    made = S3Server(server, url, client, bucket)
    try:
        yield made
    finally:
        made.stop()
