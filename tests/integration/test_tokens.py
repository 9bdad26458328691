"""Bearer tokens of others: a real issuer's keys over HTTP, real signatures, real doors."""

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from agent.core.errors import AuthError, ConfigError, StoreError
from agent.core.settings import Settings
from gateway.access import issuer_keys, issuer_metadata
from gateway.access.external_tokens import JwtVerifier, TokenGrant, build_token_verifier
from tests.integration.conftest import Serve
from tests.support.canned import Canned, CannedServer, canned_server

ISSUER = "https://login.example"
AUDIENCE = "stepgate"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def token(key: Any = KEY, algorithm: str = "RS256", key_id: str = "k1", **changes: Any) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "exp": time.time() + 600, "scope": "openid stepgate:agent"}
    claims = {name: value for name, value in (claims | changes).items() if value is not None}
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": key_id})


def key_set(key: Any = KEY, key_id: str = "k1") -> Canned:
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    jwk |= {"kid": key_id, "use": "sig", "alg": "RS256"}
    return Canned(body=json.dumps({"keys": [jwk]}).encode(), headers={"content-type": "application/json"})


@pytest.fixture
async def issuer() -> AsyncIterator[CannedServer]:
    async with canned_server() as server:
        server.load(*[key_set()] * 20)
        yield server


@pytest.fixture
def verifier(issuer: CannedServer) -> JwtVerifier:
    return JwtVerifier(ISSUER, AUDIENCE, f"{issuer.url}/jwks.json")


async def test_a_signed_token_speaks_for_its_subject(verifier: JwtVerifier, issuer: CannedServer) -> None:
    grant = await verifier.verify(token(name="Anna A."))
    assert grant is not None
    assert (grant.owner, grant.name, grant.scopes) == ("anna", "Anna A.", frozenset({"agent"}))
    await verifier.verify(token())
    assert len(issuer.seen) == 1, "the issuer's keys are fetched once"
    unscoped = await verifier.verify(token(scope=None))
    assert unscoped is not None
    assert unscoped.scopes == {"chat", "agent", "mcp"}, "neither approving, nor ingesting, nor administration"


def unsigned() -> str:
    head, body, _ = token().split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT","kid":"k1"}').rstrip(b"=").decode()
    assert head != none
    return f"{none}.{body}."


def signed_with_the_public_key() -> str:
    """The library refuses to make one; an attacker would not."""
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT","kid":"k1"}').rstrip(b"=").decode()
    signed = f"{head}.{token().split('.')[1]}"
    mac = hmac.digest(public, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "forged",
    [
        lambda: token(OTHER),
        lambda: token(exp=time.time() - 3600),
        lambda: token(exp=None),
        lambda: token(aud="another-service"),
        lambda: token(aud=None),
        lambda: token(iss="https://evil.example"),
        lambda: token(nbf=time.time() + 3600),
        lambda: token(sub=None),
        lambda: token(sub="local"),
        lambda: token(sub=["anna"]),
        lambda: token()[:-8] + "AAAAAAAA",
        lambda: "a.b.c",
        lambda: f"{'a' * 20_000}.b.c",
        unsigned,
        signed_with_the_public_key,
    ],
)
async def test_no_other_token_does(verifier: JwtVerifier, forged: Any) -> None:
    with pytest.raises(AuthError):
        await verifier.verify(forged())


async def test_what_is_no_token_is_left_to_others_and_an_issuer_that_is_down_is_said(issuer: CannedServer) -> None:
    verifier = JwtVerifier(ISSUER, AUDIENCE, "http://127.0.0.1:9/jwks.json")
    assert await verifier.verify("ollama") is None
    with pytest.raises(StoreError, match="cannot be fetched"):
        await verifier.verify(token())


async def test_tokens_that_name_unknown_keys_make_no_request_each(verifier: JwtVerifier, issuer: CannedServer) -> None:
    for number in range(5):
        with pytest.raises(AuthError, match="has no key"):
            await verifier.verify(token(key_id=f"made-up-{number}"))
    assert await verifier.verify(token()) is not None
    assert len(issuer.seen) == 1


async def test_a_new_key_of_the_issuer_is_known_after_a_while(
    verifier: JwtVerifier, issuer: CannedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "NEW_KEY_SECONDS", 0)
    issuer.load(key_set(), key_set(OTHER, "k2"))
    assert await verifier.verify(token()) is not None
    assert await verifier.verify(token(OTHER, key_id="k2")) is not None
    assert len(issuer.seen) == 2


@pytest.mark.parametrize(("answer", "error"), [(Canned(503, b"down"), StoreError), (Canned(body=b"<html>"), AuthError)])
async def test_an_issuer_without_keys_is_not_asked_for_each_token(
    monkeypatch: pytest.MonkeyPatch, answer: Canned, error: type[Exception]
) -> None:
    async with canned_server() as issuer:
        issuer.load(*[answer] * 9)
        verifier = JwtVerifier(ISSUER, AUDIENCE, f"{issuer.url}/jwks.json")
        for _ in range(5):
            with pytest.raises(error):
                await verifier.verify(token())
        assert len(issuer.seen) == 1
        monkeypatch.setattr(issuer_keys, "RETRY_SECONDS", 0)
        issuer.load(answer, key_set())
        recovered = JwtVerifier(ISSUER, AUDIENCE, f"{issuer.url}/jwks.json")
        with pytest.raises(error):
            await recovered.verify(token())
        assert await recovered.verify(token()) is not None


async def test_the_doors_take_them_and_keep_their_owners_apart(serve: Serve, issuer: CannedServer) -> None:
    settings = {
        "require_key": "always", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE,
        "jwt_keys_url": f"{issuer.url}/jwks.json",
    }  # fmt: skip
    async with serve(**settings) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:

        def bearer(text: str) -> dict[str, str]:
            return {"authorization": f"Bearer {text}"}

        anna, bert = bearer(token()), bearer(token(sub="bert"))
        answer = await client.post("/v1/agent", json={"prompt": "2+2"}, headers=anna)
        run_id = answer.headers["x-stepgate-run-id"]
        own = await client.get(f"/v1/runs/{run_id}", headers=anna)
        others = await client.get(f"/v1/runs/{run_id}", headers=bert)
        lacking = await client.post("/mcp", json={}, headers=anna)
        refused = await client.post("/v1/agent", json={"prompt": "2+2"}, headers=bearer(token(aud="else")))
        nobody = await client.post("/v1/agent", json={"prompt": "2+2"}, headers=bearer("something"))
    assert (answer.status_code, own.status_code, others.status_code) == (200, 200, 404)
    assert lacking.status_code == 403
    assert refused.status_code == nobody.status_code == 401
    assert "not valid here" in refused.json()["error"]["message"] if "error" in refused.json() else refused.text


class _PluggedVerifier:
    async def verify(self, token: str) -> TokenGrant | None:
        return TokenGrant("carla", "Carla") if token == "opensesame" else None


def build_plugged_verifier(_: Settings) -> _PluggedVerifier:
    return _PluggedVerifier()


async def test_a_verifier_of_ones_own_is_plugged_in_by_name(serve: Serve) -> None:
    name = f"{__name__}:build_plugged_verifier"
    async with serve(require_key="always", token_verifier=name) as url, httpx.AsyncClient(base_url=url) as client:
        headers = {"authorization": "Bearer opensesame"}
        assert (await client.post("/v1/agent", json={"prompt": "2+2"}, headers=headers)).status_code == 200
        headers = {"authorization": "Bearer else"}
        assert (await client.post("/v1/agent", json={"prompt": "2+2"}, headers=headers)).status_code == 401


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"token_verifier": "no.such:thing"}, "package.module:factory"),
        ({"token_verifier": "json"}, "package.module:factory"),
        ({"jwt_issuer": ISSUER}, "AGENT_JWT_AUDIENCE"),
        ({"jwt_issuer": ISSUER, "token_verifier": "a:b"}, "AGENT_JWT_ISSUER"),
        ({"jwt_issuer": "file:///etc", "jwt_audience": AUDIENCE}, "AGENT_JWT_ISSUER: must begin with"),
    ],
)
def test_settings_that_name_no_verifier_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build_token_verifier(Settings(_env_file=None, **settings))  # type: ignore[arg-type]


def metadata(**fields: Any) -> Canned:
    return Canned(body=json.dumps(fields).encode(), headers={"content-type": "application/json"})


MISSING = Canned(status=404, body=b"<html>not here</html>")


async def test_the_issuers_metadata_names_its_keys(issuer: CannedServer) -> None:
    issuer.load(metadata(issuer=f"{issuer.url}/", jwks_uri=f"{issuer.url}/realm/certs"), key_set())
    verifier = build_token_verifier(Settings(_env_file=None, jwt_issuer=issuer.url, jwt_audience=AUDIENCE))
    assert verifier is not None
    grant = await verifier.verify(token(iss=issuer.url))
    assert grant is not None
    assert grant.owner == "anna"
    assert issuer.paths == ["/.well-known/openid-configuration", "/realm/certs"]
    await verifier.verify(token(iss=issuer.url))
    assert len(issuer.seen) == 2, "the issuer is asked once"


@pytest.mark.parametrize("answer", [MISSING, Canned(body=b"<html>"), Canned(body=b"[]"), Canned(body=b" " * 1_000_001)])
async def test_an_issuer_without_metadata_has_its_keys_at_the_usual_path(issuer: CannedServer, answer: Canned) -> None:
    issuer.load(answer, MISSING, key_set())
    assert await JwtVerifier(issuer.url, AUDIENCE).verify(token(iss=issuer.url)) is not None
    assert issuer.paths[-1] == "/.well-known/jwks.json"


async def test_metadata_that_cannot_be_trusted_is_refused_and_asked_for_again(issuer: CannedServer) -> None:
    verifier = JwtVerifier(issuer.url, AUDIENCE)
    keys = f"{issuer.url}/certs"
    for bad, said in (
        (metadata(issuer="https://evil.example", jwks_uri=keys), "not of AGENT_JWT_ISSUER"),
        (metadata(jwks_uri=keys), "not of AGENT_JWT_ISSUER"),
        (metadata(issuer=issuer.url), "no usable `jwks_uri`"),
        (metadata(issuer=issuer.url, jwks_uri="file:///etc/passwd"), "no usable `jwks_uri`"),
        (Canned(status=503), "HTTP 503; try again"),
    ):
        issuer.load(bad)
        with pytest.raises(StoreError, match=said):
            await verifier.verify(token(iss=issuer.url))
    issuer.load(metadata(issuer=issuer.url, jwks_uri=keys), key_set())
    assert await verifier.verify(token(iss=issuer.url)) is not None


async def test_keys_of_an_https_issuer_are_not_fetched_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"issuer": ISSUER, "jwks_uri": "http://login.example/certs"}
    monkeypatch.setattr(issuer_metadata, "_read_metadata", lambda url: named)
    with pytest.raises(StoreError, match="no usable `jwks_uri`"):
        await JwtVerifier(ISSUER, AUDIENCE).verify(token())
