"""`try_model` and `can_see`: real calls of a model before it is saved, which show that it replies and sees pictures."""

import base64
import struct
import zlib
from time import monotonic

from pydantic import JsonValue

from agent.core.errors import ModelError
from agent.core.models import FrozenModel, JsonObject
from agent.llm.port import ModelClient, ModelRequest

TRIAL_TOKENS = 16
_MESSAGES: tuple[JsonObject, ...] = (
    {"role": "system", "content": "You reply with single words."},
    {"role": "user", "content": "Reply with the word: hello"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "Reply with the word: ready"},
)
"""A conversation with instructions, as the engine's are: some templates take no system role."""

SIGHT_SECONDS = 60.0
"""Time limit of each call with a picture. A model that needs longer for a small one is of no use with larger ones."""
_SIGHT_TOKENS = 300
_SIDE = 64
_COLOURS = {"red": (255, 0, 0), "blue": (0, 0, 255)}
"""The colour of each picture. A model that only guesses says the same of both."""
_QUESTION = "Which colour is this picture? Reply with one word."


class ModelTrial(FrozenModel):
    """The outcome of one real call. `reply` is the beginning of the model's text, `base_url` where the API is."""

    ok: bool
    reason: str = ""
    model: str = ""
    base_url: str = ""
    reply: str = ""
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    vision: bool = False
    """Whether the model sees pictures, if it was tried."""


async def try_model(client: ModelClient, model: str, *, timeout_s: float) -> ModelTrial:
    """Asks the model for one word. Never raises `ModelError`: the trial says what went wrong."""
    request = _build_request(model, _MESSAGES, max_tokens=TRIAL_TOKENS, timeout_s=timeout_s)
    started = monotonic()
    try:
        reply = await client.complete(request)
    except ModelError as error:
        return ModelTrial(ok=False, reason=error.message, model=model, seconds=round(monotonic() - started, 3))
    # A model that thinks spends these few tokens on its thoughts: that it replied at all is what counts.
    written = reply.text.strip() or reply.reasoning.strip()
    is_usable = bool(written) or reply.usage.completion_tokens > 0
    return ModelTrial(
        ok=is_usable,
        reason="" if is_usable else "the model sent an empty reply",
        model=model,
        reply=written[:200],
        seconds=round(monotonic() - started, 3),
        prompt_tokens=reply.usage.prompt_tokens,
        completion_tokens=reply.usage.completion_tokens,
    )


async def can_see(client: ModelClient, model: str) -> bool:
    """Whether the model names the colours of pictures: few endpoints list it. An endpoint that refuses pictures has a
    model without sight."""
    for name, colour in _COLOURS.items():
        url = f"data:image/png;base64,{base64.b64encode(_draw(colour)).decode()}"
        parts: list[JsonValue] = [{"type": "text", "text": _QUESTION}, {"type": "image_url", "image_url": {"url": url}}]
        message: JsonObject = {"role": "user", "content": parts}
        request = _build_request(model, (message,), max_tokens=_SIGHT_TOKENS, timeout_s=SIGHT_SECONDS)
        try:
            reply = await client.complete(request)
        except ModelError:
            return False
        named = [one for one in _COLOURS if one in reply.text.lower()]
        if named != [name]:
            return False
    return True


def _build_request(model: str, messages: tuple[JsonObject, ...], *, max_tokens: int, timeout_s: float) -> ModelRequest:
    return ModelRequest(
        model=model,
        messages=messages,
        purpose="probe",
        temperature=0.0,
        max_tokens=max_tokens,
        timeout_s=timeout_s,
        retry_timeouts=False,
    )


def _draw(colour: tuple[int, int, int]) -> bytes:
    """A PNG of one colour."""
    rows = (b"\x00" + bytes(colour) * _SIDE) * _SIDE
    parts = {b"IHDR": struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0), b"IDAT": zlib.compress(rows), b"IEND": b""}
    chunks = (struct.pack(">I", len(data)) + kind + data + _sum(kind + data) for kind, data in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _sum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))
