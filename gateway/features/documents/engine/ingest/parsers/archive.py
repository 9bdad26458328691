"""Checks zip containers before a parser unpacks them: sizes, ratio, entity declarations, checksums.

Threats: 42 KB that unpack to terabytes (declared sizes are summed first, and reading stops there, so a lie fails the
checksum), overlapping members, and XML that expands its own entities.
"""

import io
import re
import zipfile
import zlib

from gateway.features.documents.engine.ingest.errors import ParserCorruptError, ParserEncryptedError

MAX_UNPACKED = 256 * 2**20
"""Bytes; a quarter of a worker's memory, because a parser holds a document about three times."""

MAX_MEMBERS = 10_000
_MAX_RATIO = 100
"""Deflate reaches 1,032; sheets full of repeated rows were measured at 40."""

_RATIO_FROM = 16 * 2**20
"""The ratio of smaller files does not matter."""

_ENCRYPTED_FLAG = 0x1
_PIECE = 2**20
_XML = (".xml", ".rels", ".vml")
_DECLARATION = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)
"""Office Open XML forbids document type declarations (ECMA-376 part 2, 6.2.5), so valid files have none."""


def check_archive(data: bytes, name: str) -> list[str]:
    """The names of the members, reading each once without keeping it.

    Raises `ParserCorruptError` for damage and bombs, `ParserEncryptedError` for zip encryption.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_sizes(members, len(data), name)
            for member in members:
                _check_member(archive, member, name)
            return [member.filename for member in members]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise ParserCorruptError(f"{name} is not a readable zip container: {error}", reason="damaged") from error


def _check_sizes(members: list[zipfile.ZipInfo], packed: int, name: str) -> None:
    if len(members) > MAX_MEMBERS:
        raise ParserCorruptError(f"{name} holds {len(members)} files, more than {MAX_MEMBERS}", reason="zip bomb")
    total = sum(member.file_size for member in members)
    if total > MAX_UNPACKED or (total > _RATIO_FROM and total > _MAX_RATIO * packed):
        raise ParserCorruptError(
            f"{name} would unpack from {packed} to {total} bytes", reason="zip bomb", packed=packed, unpacked=total
        )


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> None:
    if member.flag_bits & _ENCRYPTED_FLAG:
        raise ParserEncryptedError(f"{name} is protected by a password")
    is_xml = member.filename.lower().endswith(_XML)
    tail = b""
    with archive.open(member) as stream:
        while piece := stream.read(_PIECE):
            if is_xml and _DECLARATION.search(tail + piece.replace(b"\x00", b"")):  # NULs: the text may be UTF-16
                message = f"{name} declares entities in {member.filename}; Office documents never do"
                raise ParserCorruptError(message, reason="entity declaration")
            tail = piece[-64:].replace(b"\x00", b"")
