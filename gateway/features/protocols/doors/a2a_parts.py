"""The parts of an A2A message: text, data, images, and files, whose text is read as untrusted data.

Imports the A2A SDK, so only the loaded A2A door imports this module.
"""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from a2a.types.a2a_pb2 import Part
from a2a.utils import errors as a2a_errors
from google.protobuf.json_format import MessageToDict

from agent.core.surrogates import replace_surrogates
from agent.policy.guardrails import attach_untrusted
from gateway.features.documents.engine.ingest.connectors.content_types import detect_file_type, read_media_type
from gateway.features.documents.engine.ingest.errors import ParserError
from gateway.features.documents.engine.ingest.parsers import ParserLimits, ParserPool
from gateway.features.documents.engine.search.models import FileType, ParserInput

FILE_CHARS = 100_000
"""Most characters of a file that models are shown."""
PARTS = 1_000
"""Most parts of a message."""
FILES = 20
"""Most files of a message."""
NAME_CHARS = 120
LIMITS = ParserLimits(timeout_s=30.0)


@dataclass(frozen=True, slots=True)
class MessageContent:
    """What a message says: the user's words with its data as JSON, images as URLs, and files as quoted texts."""

    text: str
    images: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    file_type: FileType
    data: bytes


async def read_parts(parts: Sequence[Part]) -> MessageContent:
    """The content of a message. Raises `ContentTypeNotSupportedError` for a part that nothing here reads, and
    `InvalidParamsError` for a broken file, or too many parts.
    """
    if len(parts) > PARTS:
        raise a2a_errors.InvalidParamsError(f"a message may have {PARTS:,} parts; this one has {len(parts):,}")
    texts: list[str] = []
    images: list[str] = []
    files: list[_File] = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            texts.append(part.text)
        elif kind == "data":
            texts.append(json.dumps(MessageToDict(part.data), ensure_ascii=False))
        elif kind in ("url", "raw") and part.media_type.startswith("image/"):
            images.append(_get_image_url(part))
        elif kind == "raw":
            files.append(_get_file(part, len(files) + 1))
        else:
            name = part.media_type or kind or "empty"
            raise a2a_errors.ContentTypeNotSupportedError(
                f"a part of type {name[:80]!r}: send text, data, images, or a file's content as `raw`"
            )
    if len(files) > FILES:
        raise a2a_errors.InvalidParamsError(f"a message may have {FILES} files; this one has {len(files)}")
    return MessageContent("\n".join(texts), tuple(images), await _read_files(files))


def _get_image_url(part: Part) -> str:
    if part.WhichOneof("content") == "url":
        return str(part.url)
    encoded = MessageToDict(part)["raw"]  # base64, as JSON holds bytes
    return f"data:{part.media_type};base64,{encoded}"


def _get_file(part: Part, number: int) -> _File:
    name = replace_surrogates(part.filename)[:NAME_CHARS] or f"file {number}"
    file_type = detect_file_type(part.media_type, name)
    if file_type is None:
        refusal = f"a file of type {(read_media_type(part.media_type) or name)[:80]!r} is not read"
        raise a2a_errors.ContentTypeNotSupportedError(f"{refusal}: send text, PDF, HTML, Office files, CSV or mail")
    return _File(name, file_type, part.raw)


async def _read_files(files: Sequence[_File]) -> tuple[str, ...]:
    """The texts of the files, quoted for models. They are read in worker processes, which end afterwards."""
    if not files:
        return ()
    with tempfile.TemporaryDirectory(prefix="stepgate-a2a-") as folder:
        async with ParserPool(LIMITS) as pool:
            return tuple([await _read_file(pool, Path(folder), file) for file in files])


async def _read_file(pool: ParserPool, folder: Path, file: _File) -> str:
    path = folder / f"part.{file.file_type}"
    await asyncio.to_thread(path.write_bytes, file.data)
    try:
        output = await pool.parse(ParserInput(file_path=str(path), file_type=file.file_type), is_measured=False)
    except ParserError as error:
        message = error.message.replace(str(path), file.name).replace(path.name, file.name)
        raise a2a_errors.InvalidParamsError(f"the file {file.name!r} cannot be read: {message}") from error
    text = "\n\n".join(chunk.content for chunk in output.chunks)
    if len(text) > FILE_CHARS:
        text = f"{text[:FILE_CHARS]}\n[{len(text) - FILE_CHARS:,} further characters were left out]"
    return attach_untrusted(text, f"the file {file.name}")
