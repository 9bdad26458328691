"""The optional parts of an installation, and how to get them. `make run` installs none of them."""

import importlib.util
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

IN_CLONE: Final = (Path(__file__).resolve().parents[2] / "Makefile").is_file()
"""Whether Stepgate runs from its repository, where `make` works, not from an installed wheel."""


class Extra(NamedTuple):
    """An optional part: the modules it needs, and what it is for."""

    modules: tuple[str, ...]
    purpose: str
    pip: str = ""
    """The requirement to install in place of `stepgate[NAME]`, for an extra whose lock is its own. Only in a clone."""

    @property
    def is_installed(self) -> bool:
        """Whether all its modules can be imported."""
        try:
            return all(importlib.util.find_spec(name) is not None for name in self.modules)
        except ModuleNotFoundError:  # the package around a module is missing
            return False


EXTRAS: Final[Mapping[str, Extra]] = {
    "a2a": Extra(("a2a", "sse_starlette"), "the A2A door, /a2a"),
    "bedrock": Extra(("boto3",), "Amazon's models, bedrock/... and sagemaker/..."),
    "interpreter": Extra(
        ("pydantic_monty",), "programs and generated tools where processes cannot be locked (docs/sandbox.md)"
    ),
    "kreuzberg": Extra(("kreuzberg",), "a second reader of Word, PowerPoint, Excel and HTML"),
    "postgres": Extra(("psycopg", "psycopg_pool"), "the store on PostgreSQL, AGENT_DATABASE_URL"),
    "local-embedder": Extra(("onnxruntime", "tokenizers"), "a local embedding model, AGENT_EMBEDDER_MODEL_DIR"),
    "langgraph": Extra(("langgraph",), "the LangGraph driver, AGENT_WORKFLOW=langgraph"),
    "otel": Extra(("opentelemetry.sdk", "opentelemetry.exporter"), "traces, OTEL_EXPORTER_OTLP_ENDPOINT"),
    "eval": Extra(
        ("inspect_ai",),
        "the evaluation, stepgate eval",
        pip="--no-deps -r gateway/features/evaluation/requirements.lock",
    ),
    "local": Extra(("xllamacpp", "huggingface_hub"), "a model file served by the gateway itself, AGENT_MODEL_FILE"),
    "scale": Extra(("obstore", "procrastinate"), "workers on a queue, objects in an S3-compatible store"),
}
"""By the name of the extra in pyproject.toml."""


def list_extras() -> Mapping[str, Extra]:
    """The extras that this installation can have, by name."""
    return {name: extra for name, extra in EXTRAS.items() if IN_CLONE or not extra.pip}


def format_install_command(extra: str) -> str:
    """The command that installs an extra into the environment that is running, which has no pip if uv made it.

    It names a path of this machine: for the terminal. What a client reads has `format_install_hint`.
    """
    requirement = EXTRAS[extra].pip if extra in EXTRAS and EXTRAS[extra].pip else f"'stepgate[{extra}]'"
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python} {requirement}"
    return f"{python} -m pip install {requirement}"


def format_install_hint(extra: str) -> str:
    """Describes how to install an extra, for errors."""
    requirement = EXTRAS[extra].pip or f"'stepgate[{extra}]'"
    if IN_CLONE:
        return f"install it with `make dev` or `.venv/bin/python -m pip install {requirement}`"
    return f"install {requirement} into the environment of Stepgate; `stepgate doctor` prints the command"
