"""`DriveFile`: the metadata of a Drive file, and the file type it is fetched as."""

from dataclasses import dataclass
from typing import NamedTuple

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.connectors.content_types import detect_file_type, get_suffix
from gateway.features.documents.engine.ingest.connectors.drive_address import Reference, is_id
from gateway.features.documents.engine.ingest.connectors.drive_auth import make_printable_line
from gateway.features.documents.engine.ingest.errors import ConnectorError
from gateway.features.documents.engine.search.models import FileType

FIELDS = (
    "id,name,mimeType,size,md5Checksum,headRevisionId,version,createdTime,modifiedTime,trashed,driveId,resourceKey,"
    "webViewLink,owners(displayName,emailAddress),lastModifyingUser(displayName,emailAddress),"
    "shortcutDetails(targetId,targetMimeType,targetResourceKey)"
)
_METADATA_FIELDS = (
    "name", "mimeType", "size", "md5Checksum", "headRevisionId", "version", "createdTime", "modifiedTime", "owners",
    "lastModifyingUser", "webViewLink", "driveId",
)  # fmt: skip
"""Fields that become document metadata. The resource key is a secret and is left out."""
_GOOGLE = "application/vnd.google-apps."
_FOLDER = f"{_GOOGLE}folder"
_OFFICE = "application/vnd.openxmlformats-officedocument."


class Export(NamedTuple):
    """The format that a native Google document is exported as."""

    file_type: FileType
    mime: str


EXPORTS: dict[str, Export] = {
    f"{_GOOGLE}document": Export("docx", f"{_OFFICE}wordprocessingml.document"),
    f"{_GOOGLE}spreadsheet": Export("xlsx", f"{_OFFICE}spreadsheetml.sheet"),
    f"{_GOOGLE}presentation": Export("pptx", f"{_OFFICE}presentationml.presentation"),
}


@dataclass(frozen=True, slots=True)
class DriveFile:
    """A file, a folder or a shortcut. `size` (bytes) and `md5` (hex) are known for files with content of their own."""

    reference: Reference
    name: str
    mime: str
    version: str
    """Identifies the content: MD5 or revision. Native documents only have a number, which also rises for invisible
    changes."""
    size: int | None
    md5: str
    trashed: bool
    drive_id: str
    url: str | None
    target: Reference | None
    """The target of a shortcut."""
    target_is_folder: bool
    metadata: JsonObject

    @property
    def id(self) -> str:
        """Drive's id."""
        return self.reference.id

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.mime == _FOLDER

    @property
    def export(self) -> Export | None:
        """The export format of a native document; None if the file has content of its own or cannot be exported."""
        return EXPORTS.get(self.mime)

    @property
    def file_type(self) -> FileType | None:
        """The file type after fetching; None if no parser reads it."""
        if self.mime.startswith(_GOOGLE):
            return self.export.file_type if self.export else None
        return detect_file_type(self.mime, self.name)

    @property
    def local_name(self) -> str:
        """The file name in the workspace. Never the original name, which may be anything."""
        return (
            f"{self.id}.{self.export.file_type}"
            if self.export
            else f"{self.id}{_make_safe_suffix(get_suffix(self.name))}"
        )


def parse_file(data: object) -> DriveFile:
    """Parses a file from the API's JSON. Raises `ConnectorError` if it is invalid."""
    if not isinstance(data, dict) or not is_id(data.get("id")) or not isinstance(data.get("mimeType"), str):
        raise ConnectorError("Google Drive described a file without an id or a type; try again later")
    shortcut = data.get("shortcutDetails")
    details = shortcut if isinstance(shortcut, dict) else {}
    size = _get_text(data, "size")
    link = _get_text(data, "webViewLink")
    return DriveFile(
        reference=Reference(data["id"], _get_text(data, "resourceKey")),
        name=make_printable_line(data.get("name") or data["id"]),
        mime=data["mimeType"],
        version=_get_text(data, "md5Checksum") or _get_text(data, "headRevisionId") or _get_text(data, "version"),
        size=int(size) if size.isascii() and size.isdigit() else None,
        md5=_get_text(data, "md5Checksum").lower(),
        trashed=data.get("trashed") is True,
        drive_id=_get_text(data, "driveId"),
        url=link if link.startswith("https://") else None,
        target=Reference(details["targetId"], _get_text(details, "targetResourceKey"))
        if is_id(details.get("targetId"))
        else None,
        target_is_folder=details.get("targetMimeType") == _FOLDER,
        metadata={name: data[name] for name in _METADATA_FIELDS if name in data},
    )


def _get_text(data: JsonObject, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _make_safe_suffix(ending: str) -> str:
    return ending if ending[1:].isalnum() and ending.isascii() and len(ending) <= 10 else ""
