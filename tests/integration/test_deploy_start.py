"""The first commands of docs/deploy, in their order, lead to a gateway that answers."""

import re
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.processes import ROOT, GatewayProcess, start

DEPLOY = ROOT / "docs" / "deploy"
REACHED = {"AGENT_HOST": "0.0.0.0", "AGENT_REQUIRE_KEY": "always"}
"""As the image and both examples set it."""


@pytest.mark.parametrize("page", ["README.md", "compose.yaml"])
def test_the_commands_of_compose_make_a_key_before_the_gateway_starts(tmp_path: Path, page: str) -> None:
    commands = re.findall(r"docker compose -f docs/deploy/compose.yaml (.+)", (DEPLOY / page).read_text("utf-8"))
    first_start = commands.index("up -d")
    for command in commands[:first_start]:
        arguments = re.sub(r"^run --rm gateway ", "", command).split()
        made = start(
            [sys.executable, "-m", "gateway.cli", *arguments], environment={**REACHED, "AGENT_DATA_DIR": str(tmp_path)}
        )
        assert made.wait() == 0, made.output
    with GatewayProcess(tmp_path, host="0.0.0.0", require_key="always") as gateway:
        port = gateway.url.rsplit(":", 1)[1]
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_open_webui_of_compose_has_a_key_when_it_starts() -> None:
    text = (DEPLOY / "README.md").read_text("utf-8")
    (arguments,) = re.findall(r"gateway keys create open-webui (.+)", text)
    assert arguments == "--scopes chat,approve"
    assert "`STEPGATE_API_KEY`" in text


def test_the_commands_of_kubernetes_make_the_key_where_none_is_needed() -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text("utf-8")
    deployments = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0]
        for one in yaml.safe_load_all(text)
        if one["kind"] == "Deployment"
    }
    (name,) = re.findall(r"kubectl exec deploy/(\S+) -- stepgate keys create", text)
    assert deployments[name]["args"][0] != "serve", "a gateway that waits for its first key has ended"
    for container in deployments.values():
        if ":" not in container["image"]:
            assert container["imagePullPolicy"] == "IfNotPresent", "a tag `latest` is always pulled, from a registry"
