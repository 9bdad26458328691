"""The examples of docs/deploy allow the names by which their own parts and probes call the gateway."""

import re
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from agent.core.settings import Settings
from tests.integration.conftest import Serve
from tests.support.processes import ROOT
from tests.support.reverse_proxy import PREFIX, SAMPLE, find_free_port, reverse_proxy

DEPLOY = ROOT / "docs" / "deploy"
ASKED = {"model": "stepgate", "messages": [{"role": "user", "content": "What is 2*21?"}]}
SHARED = ("AGENT_ALLOWED_HOSTS", "AGENT_PUBLIC_URL", "AGENT_CORS_ORIGINS")


def read_hosts(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The settings of hosts as a gateway reads them from this environment, without keys: only names count then."""
    for name in SHARED:
        # As Compose substitutes it where nothing is set.
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", environment.get(name, "")))
    settings = Settings(_env_file=None)
    found = {name: getattr(settings, name) for name in ("allowed_hosts", "public_url", "cors_origins")}
    return {**found, "require_key": "never"}


async def test_open_webui_and_the_health_check_of_compose_are_answered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    options = read_hosts(services["gateway"]["environment"], monkeypatch)
    (probe,) = re.findall(r"http://(\S+?):\{os.environ\S+\}(/\w+)", (DEPLOY / "Dockerfile").read_text("utf-8"))
    published = services["gateway"]["ports"][0].rpartition(":")[0]
    base_url = urlsplit(services["open-webui"]["environment"]["OPENAI_API_BASE_URL"])
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for host in (base_url.netloc, published, "localhost:8010", "host.docker.internal:8010"):
            answered = await client.post("/v1/chat/completions", json=ASKED, headers={"host": host})
            assert answered.status_code == 200, (host, answered.text)
        assert (await client.get(probe[1], headers={"host": f"{probe[0]}:8010"})).status_code == 200
        assert (await client.get("/v1/models", headers={"host": "evil.example"})).status_code == 421


async def test_what_compose_reads_from_its_file_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["gateway"]["environment"]
    for name in SHARED:
        assert f"${{{name}:-}}" in environment[name]
    monkeypatch.setenv(
        "AGENT_ALLOWED_HOSTS", environment["AGENT_ALLOWED_HOSTS"].replace("${AGENT_ALLOWED_HOSTS:-}", "b.lan")
    )
    assert Settings(_env_file=None).allowed_hosts == ("gateway", "b.lan")


async def test_the_service_and_the_probes_of_kubernetes_are_answered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))
    by_kind = {document["kind"]: document for document in reversed(documents)}
    options = read_hosts(by_kind["ConfigMap"]["data"], monkeypatch)
    service = by_kind["Service"]["metadata"]["name"]
    (container,) = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    probes = [container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for name in (service, f"{service}.default", f"{service}.default.svc.cluster.local"):
            assert (await client.post("/v1/chat/completions", json=ASKED, headers={"host": name})).status_code == 200
        for probe in probes:  # the kubelet names the pod's address; a load balancer in front may name anything
            for host in ("10.42.0.17:8010", "[fd00::11]:8010", "anything.internal"):
                assert (await client.get(probe["path"], headers={"host": host})).status_code == 200
        assert (await client.get("/v1/models", headers={"host": f"{service}.other"})).status_code == 421


@pytest.mark.parametrize("follows_readme", [True, False])
async def test_the_proxy_of_the_nginx_example_is_answered(serve: Serve, follows_readme: bool) -> None:
    text = SAMPLE.read_text("utf-8")
    (public_url,), (name,) = re.findall(r"AGENT_PUBLIC_URL=(\S+)", text), re.findall(r"server_name (\S+);", text)
    assert urlsplit(public_url).hostname == name
    options = {"public_url": public_url} if follows_readme else {}
    port = find_free_port()
    async with (
        serve(require_key="never", **options) as url,
        reverse_proxy(port, url.removeprefix("http://")),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}{PREFIX}", headers={"host": name}, timeout=30) as client,
    ):
        page = {"origin": f"https://{name}", "sec-fetch-site": "same-origin"}
        got = [
            await client.get("/"),
            await client.get("/v1/models"),
            await client.post("/v1/chat/completions", json=ASKED, headers=page),
            await client.post("/v1/runs/none/cancel", headers=page),
            await client.post("/v1/agent", json={}, headers={"origin": "https://evil.example"}),
            await client.get("/health"),
        ]
    expected = [200, 200, 200, 404, 403, 200] if follows_readme else [421, 421, 421, 421, 403, 200]
    assert [response.status_code for response in got] == expected
