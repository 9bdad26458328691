"""`can_see`: whether a model sees pictures, found out by real calls: few endpoints list it."""

import base64
import struct
import zlib

from pydantic import JsonValue

from agent.core.errors import ModelError
from agent.llm.port import ModelClient, ModelRequest

SIGHT_SECONDS = 60.0
"""Time limit of each call. A model that needs longer for a small picture is of no use with larger ones."""
_TOKENS = 300
_SIDE = 64
_COLOURS = {"red": (255, 0, 0), "blue": (0, 0, 255)}
"""The colour of each picture. A model that only guesses says the same of both."""
_QUESTION = "Which colour is this picture? Reply with one word."


async def can_see(client: ModelClient, model: str) -> bool:
    """Whether the model names the colours of pictures. An endpoint that refuses pictures has a model without sight."""
    for name, colour in _COLOURS.items():
        try:
            reply = await client.complete(_build_request(model, _draw(colour)))
        except ModelError:
            return False
        named = [one for one in _COLOURS if one in reply.text.lower()]
        if named != [name]:
            return False
    return True


def _build_request(model: str, picture: bytes) -> ModelRequest:
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    parts: list[JsonValue] = [{"type": "text", "text": _QUESTION}, {"type": "image_url", "image_url": {"url": url}}]
    return ModelRequest(
        model=model,
        messages=({"role": "user", "content": parts},),
        purpose="probe",
        temperature=0.0,
        max_tokens=_TOKENS,
        timeout_s=SIGHT_SECONDS,
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
