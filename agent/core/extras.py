"""The optional parts of an installation, and how to get them. `make run` installs none of them."""

import importlib.util
from collections.abc import Mapping
from typing import Final, NamedTuple


class Extra(NamedTuple):
    """An optional part: the modules it needs, and what it is for."""

    modules: tuple[str, ...]
    purpose: str
    pip: str = ""
    """The requirement to install in place of `stepgate[NAME]`, for an extra whose lock is its own."""

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


def format_install_hint(extra: str) -> str:
    """Describes how to install an extra, for errors and `stepgate doctor`."""
    requirement = EXTRAS[extra].pip or f"'stepgate[{extra}]'"
    return f"install it with `make dev` or `pip install {requirement}`"
