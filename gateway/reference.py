"""The reference pages under `docs/`, made from the code they describe: `python -m gateway.reference docs`."""

import sys
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from agent.core.config import PREFIX, Settings
from agent.core.config_aliases import ALIASES, PREFIXES, REPLACED
from agent.core.errors import FAILURES
from gateway.limits_table import limits_table
from gateway.render.errors import DOOR_FAILURES


def settings_table() -> str:
    """Every setting with its default and meaning, as Markdown."""
    lines = [
        "# Settings",
        "",
        "Made from `agent/core/config.py` by `make docs`. Every setting is an environment variable, or a line in",
        "`.env` in the folder Stepgate is started from; the environment wins. Lists are separated by commas, or JSON.",
        "`stepgate doctor` names wrong ones.",
        "",
        "| setting | default | meaning |",
        "| --- | --- | --- |",
    ]
    for name, field in Settings.model_fields.items():
        lines.append(f"| `{PREFIX}{name.upper()}` | {_default(field)} | {field.description} |")
    lines += [
        "",
        "## Names other orchestrators use",
        "",
        "Read where Stepgate's own name is not set; `AGENT_ORCHESTRATOR_` wins over `ORCHESTRATOR_`.",
        "",
        "| name | after the prefix `ORCHESTRATOR_` too | setting |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| `{PREFIXES[0]}{name}` | `{PREFIXES[1]}{name}` | `{PREFIX}{field.upper()}` |"
        for name, field in ALIASES.items()
    ]
    lines += ["", "These set nothing here; `stepgate doctor` says so where they are set:", ""]
    lines += [f"- `{PREFIXES[0]}{name}`: {instead}" for name, instead in REPLACED.items()]
    return "\n".join(lines) + "\n"


def failure_table() -> str:
    """Every error code with its meaning, what is done about it and its HTTP status, as Markdown."""
    lines = [
        "# Failures",
        "",
        "Made by `make docs` from `agent/core/errors.py` and `gateway/render/errors.py`. Every failure that leaves",
        "Stepgate is an `AgentFailure`: `agent_id, error_code, message, recoverable, details, timestamp`; the OpenAI",
        "door shows it in its shape.",
        "",
        "| code | meaning | what is done | HTTP |",
        "| --- | --- | --- | --- |",
    ]
    kinds = {**FAILURES, **DOOR_FAILURES}
    lines += [f"| `{code}` | {kind.meaning} | {kind.action} | {kind.http_status} |" for code, kind in kinds.items()]
    return "\n".join(lines) + "\n"


PAGES = {"settings.md": settings_table, "failures.md": failure_table, "limits.md": limits_table}


def write(folder: Path) -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), "utf-8")


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is None or value == () or isinstance(value, SecretStr):
        return "unset"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
