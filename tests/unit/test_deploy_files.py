"""The files under `docs/deploy` name settings, commands and paths that exist."""

import re
from pathlib import Path

import pytest
import yaml

from agent.core.settings import Settings
from agent.core.settings.secret_files import is_secret
from tests.support.processes import ROOT

DEPLOY = ROOT / "docs" / "deploy"
FIELDS = {f"AGENT_{name.upper()}": field for name, field in Settings.model_fields.items()}


@pytest.mark.parametrize("path", sorted(DEPLOY.iterdir()), ids=lambda path: path.name)
def test_deploy_files_name_settings_that_exist(path: Path) -> None:
    for name in re.findall(r"\bAGENT_[A-Z_]+\b", path.read_text("utf-8")):
        secret = name.removesuffix("_FILE")
        assert name in FIELDS or (name != secret and is_secret(FIELDS[secret])), name


def test_the_image_copies_paths_that_exist_and_are_not_ignored() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert sources == {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / source).exists() for source in sources)


def test_the_containers_have_no_rights_and_one_writable_folder() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["gateway"]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))
    pod = next(document for document in documents if document["kind"] == "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsNonRoot"]
    grace = Settings.model_fields["drain_seconds"].default + 3
    assert pod["terminationGracePeriodSeconds"] >= grace
    assert int(service["stop_grace_period"].removesuffix("s")) >= grace
