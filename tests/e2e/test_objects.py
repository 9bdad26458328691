"""Uploads in an S3-compatible store: sent to one gateway, opened at another, and a store that is away."""

import hashlib
from pathlib import Path

import httpx

from tests.integration.test_cli import stepgate
from tests.support.postgres import fresh_database
from tests.support.processes import GatewayProcess
from tests.support.s3 import KEY_ID, SECRET, s3_server

TEXT = b"# Handbook\n\nEvery employee has 28 days of paid holiday.\n"


def send(url: str, data: bytes, name: str = "handbook.md") -> httpx.Response:
    return httpx.post(f"{url}/v1/documents", files={"file": (name, data)}, timeout=60)


def test_an_upload_of_one_gateway_is_opened_and_removed_at_another(tmp_path: Path) -> None:
    checksum = hashlib.sha256(TEXT).hexdigest()
    with fresh_database() as url, s3_server() as store:
        settings = {"database_url": url, **store.settings}
        with GatewayProcess(tmp_path / "a", **settings) as first, GatewayProcess(tmp_path / "b", **settings) as second:
            made = send(first.url, TEXT).json()
            assert store.keys == [f"gate/uploads/local/{checksum}"]
            place = f"{second.url}/v1/documents/{made['document_id']}"
            file = httpx.get(f"{place}/file", timeout=60)
            assert (file.status_code, file.content) == (200, TEXT)
            refused = send(second.url, b"%PDF-1.4 no more", "broken.pdf")
            assert refused.status_code == 422
            assert store.keys == [f"gate/uploads/local/{checksum}"], "what cannot be read is not kept"
            assert httpx.get(f"{second.url}/ready", timeout=60).json()["components"]["objects"]["ok"] is True

            store.stop()
            failed = send(first.url, b"# Another\n\nText.")
            assert (failed.status_code, failed.json()["error"]["error_code"]) == (503, "ERR_STORE")
            assert f"s3://{store.bucket}/gate cannot be used" in failed.json()["error"]["message"]
            listed = httpx.get(f"{first.url}/v1/documents", timeout=60).json()["data"]
            assert [one["document_id"] for one in listed] == [made["document_id"]], "nothing is lost, nothing half made"
            assert httpx.get(f"{place}/file", timeout=60).status_code == 503
            assert httpx.get(f"{second.url}/v1/collections", timeout=60).status_code == 200
            lines = "\n".join([*first.process.output, *second.process.output])
            assert SECRET not in lines
            assert KEY_ID not in lines
        assert not any((tmp_path / name / "uploads").exists() for name in "ab")


def test_doctor_says_whether_the_store_can_be_used(tmp_path: Path) -> None:
    with s3_server() as store:
        assert f"ok   objects: s3://{store.bucket}/gate" in stepgate(tmp_path, "doctor", **store.settings)[1]
        other = {**store.settings, "objects_url": "s3://no-such-bucket"}
        code, output = stepgate(tmp_path, "doctor", **other)
        assert code == 1
        assert "FAIL objects: s3://no-such-bucket cannot be used: there is no such bucket" in output
        assert SECRET not in output
