"""Signatures of webhooks, verified by another project's code and by the specification's own words."""

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path

import openai
import pytest

from agent.storage.credentials import CredentialError, Credentials
from gateway.features.schedules.engine.webhooks.signature import build_headers

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
URL = "https://hooks.example.org/stepgate"


def write_credentials(folder: Path, **entries: object) -> Credentials:
    path = folder / "credentials.json"
    path.write_text(json.dumps(entries), "utf-8")
    path.chmod(0o600)
    return Credentials(path)


def test_a_signature_is_verified_by_the_client_of_another_project(tmp_path: Path) -> None:
    entry = {"type": "webhook", "url": URL, "secret": OTHER, "previous_secret": SECRET}
    keys = write_credentials(tmp_path, hook=entry).list_webhook_keys("hook", URL, "anna")
    body = '{"type":"run.succeeded","data":{"answer":"Grüße"}}'.encode()
    headers = build_headers("msg_1", time.time(), body, keys)
    client = openai.OpenAI(api_key="none")
    for secret in (SECRET, OTHER):  # both sign during a change of the secret
        client.webhooks.verify_signature(body, headers, secret=secret)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        client.webhooks.verify_signature(body + b" ", headers, secret=SECRET)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        client.webhooks.verify_signature(body, headers | {"webhook-id": "msg_2"}, secret=SECRET)


def test_a_signature_is_what_the_specification_says() -> None:
    headers = build_headers("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", 1674087231.9, b"{}", [bytes(range(32))])
    signed = hmac.new(bytes(range(32)), b"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W.1674087231.{}", hashlib.sha256).digest()
    assert headers == {
        "webhook-id": "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
        "webhook-timestamp": "1674087231",
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
    assert "webhook-signature" not in build_headers("msg_1", 0.0, b"", [])


def test_a_secret_signs_for_its_address_and_owners_only(tmp_path: Path) -> None:
    entry = {"type": "webhook", "url": URL, "secret": SECRET, "owners": ["anna"]}
    stored = write_credentials(tmp_path, hook=entry, site={"type": "bearer", "token": "t"})
    assert stored.list_webhook_keys("hook", URL, "anna") == [bytes(range(32))]
    for name, url, owner, reason in (
        ("hook", f"{URL}/", "anna", "another address"),
        ("hook", URL, "ben", "not for the owner"),
        ("site", URL, "anna", "not of the type webhook"),
        ("none", URL, "anna", "there is no credential"),
    ):
        with pytest.raises(CredentialError, match=reason):
            stored.list_webhook_keys(name, url, owner)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_AAAA", "hunter2", base64.b64encode(bytes(32)).decode(), "whsec_Ü"])
def test_a_weak_or_misspelt_secret_is_refused_without_being_quoted(tmp_path: Path, secret: str) -> None:
    stored = write_credentials(tmp_path, hook={"type": "webhook", "url": URL, "secret": secret})
    with pytest.raises(CredentialError, match="24 to 64 random bytes") as refused:
        stored.list_webhook_keys("hook", URL, "anna")
    assert secret == "whsec_" or secret not in str(refused.value)
