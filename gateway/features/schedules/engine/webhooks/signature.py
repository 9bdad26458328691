"""Signatures of the Standard Webhooks specification (1.0.0): HMAC-SHA256 over id, time and body."""

import base64
import hashlib
import hmac
from collections.abc import Sequence


def build_headers(delivery_id: str, at: float, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    """The headers of a post at `at` (UTC seconds), with one signature for each secret; none without secrets.

    Neither the id nor the time may contain a full stop, which separates the signed parts.
    """
    headers = {"webhook-id": delivery_id, "webhook-timestamp": str(int(at))}
    if secrets:
        signed = b"%s.%d.%s" % (delivery_id.encode(), int(at), body)
        headers["webhook-signature"] = " ".join(_sign(signed, secret) for secret in secrets)
    return headers


def _sign(signed: bytes, secret: bytes) -> str:
    return f"v1,{base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()}"
