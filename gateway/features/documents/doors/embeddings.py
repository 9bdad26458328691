"""`POST /v1/embeddings`: the vectors of the configured embedder, in OpenAI's form."""

import base64
import logging
import struct
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from fastapi import APIRouter
from pydantic import Field, JsonValue

from agent.core.errors import EmbedderError, RoomUnknownError
from agent.core.models import DeferredModel
from agent.core.settings import Settings
from agent.llm.embedder.port import MAX_TEXT_CHARS
from agent.run_context.token_estimates import estimate_tokens_from_chars
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import OpenAIRoute
from gateway.doors.openai import OPENAI_ERRORS
from gateway.doors.openai_wire import WireModel
from gateway.render.errors import RequestFormatError

log = logging.getLogger(__name__)
router = APIRouter(tags=["OpenAI"], route_class=OpenAIRoute, dependencies=[require_scope("chat")])

MAX_INPUTS: Final = 2_048
"""OpenAI's own limit."""
ANY_NAME: Final = "default"


class EmbeddingsRequest(WireModel):
    """The body of `POST /v1/embeddings`."""

    model: str = Field(min_length=1)
    input: JsonValue
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None
    user: str | None = None


class Embedding(DeferredModel):
    """One vector: numbers, or base64 of little-endian 32-bit floats."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(DeferredModel):
    """Tokens, estimated from characters: embedders do not report them all."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(DeferredModel):
    """The vectors in the order of their texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


@router.post("/v1/embeddings", responses=OPENAI_ERRORS)
async def create_embeddings(body: EmbeddingsRequest, stepgate: Gateway, caller: CurrentCaller) -> EmbeddingList:
    """Compute the vectors of texts."""
    if stepgate.embedder is None:
        message = (
            "model: no embedder is configured (AGENT_EMBEDDER_URL, AGENT_EMBEDDER_MODEL, AGENT_EMBEDDER_MODEL_DIR)."
        )
        raise RequestFormatError(message, "model", "unsupported_parameter")
    name = get_embedder_name(stepgate.settings)
    if body.model not in (name, ANY_NAME):
        raise RoomUnknownError(f"there is no embedding model {body.model[:100]!r}; known: {name}, {ANY_NAME}")
    _refuse_unknown(body)
    texts = read_texts(body.input)
    try:
        embedded = await stepgate.embedder.embed(texts)
    except EmbedderError as error:
        log.warning("embeddings for %s failed: %s", caller.owner, error.message)
        raise EmbedderError("the embedder failed; the gateway's log has the details", agent_id="embedder") from error
    if body.dimensions not in (None, embedded.space.dimension):
        message = (
            f"dimensions: the vectors of {name!r} have {embedded.space.dimension} dimensions and are not shortened."
        )
        raise RequestFormatError(message, "dimensions", "unsupported_parameter")
    as_text = body.encoding_format == "base64"
    tokens = estimate_tokens_from_chars(sum(map(len, texts)))
    return EmbeddingList(
        data=[
            Embedding(index=index, embedding=_encode(vector) if as_text else list(vector))
            for index, vector in enumerate(embedded.vectors)
        ],
        model=name,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def get_embedder_name(settings: Settings) -> str:
    """The model id of the configured embedder."""
    if settings.embedder_model_dir is not None:
        return settings.embedder_model_dir.name
    return settings.embedder_model or ANY_NAME


def read_texts(given: JsonValue) -> list[str]:
    """The input as texts. Raises `RequestFormatError` for tokens, empty and too long texts."""
    items = [given] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise RequestFormatError("input: expected a string or a list of strings.", "input", "invalid_type")
    if not 0 < len(items) <= MAX_INPUTS:
        raise RequestFormatError(f"input: from 1 to {MAX_INPUTS:,} texts are accepted.", "input", "invalid_value")
    texts: list[str] = []
    for index, item in enumerate(items):
        where = "input" if isinstance(given, str) else f"input[{index}]"
        if isinstance(item, int | list):
            message = "input: tokens are not accepted, since the embedder has its own; send text."
            raise RequestFormatError(message, "input", "unsupported_parameter")
        if not isinstance(item, str):
            raise RequestFormatError(f"{where}: expected a string.", where, "invalid_type")
        if not item:
            raise RequestFormatError(f"{where}: the text is empty.", where, "invalid_value")
        if len(item) > MAX_TEXT_CHARS:
            message = f"{where}: the text has {len(item):,} characters; at most {MAX_TEXT_CHARS:,} are accepted."
            raise RequestFormatError(message, where, "context_length_exceeded")
        texts.append(item)
    return texts


def _refuse_unknown(body: EmbeddingsRequest) -> None:
    """Raises `RequestFormatError` for an unknown field: a response has no place to name it."""
    for name, value in (body.model_extra or {}).items():
        if value is not None:
            raise RequestFormatError(f"Unknown parameter: '{name[:64]}'.", name[:64], "unknown_parameter")


def _encode(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
