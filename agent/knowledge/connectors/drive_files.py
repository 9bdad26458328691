"""`DriveFile`: a file of Drive's as its API describes it, and what it becomes when it is fetched."""

from dataclasses import dataclass
from typing import NamedTuple

from agent.core.models import JsonObject
from agent.knowledge.connectors.drive_address import Reference, is_id
from agent.knowledge.connectors.drive_auth import quoted
from agent.knowledge.connectors.kinds import file_type, suffix
from agent.knowledge.errors import ConnectorError
from agent.knowledge.models import FileType

FIELDS = (
    "id,name,mimeType,size,md5Checksum,headRevisionId,version,createdTime,modifiedTime,trashed,driveId,resourceKey,"
    "webViewLink,owners(displayName,emailAddress),lastModifyingUser(displayName,emailAddress),"
    "shortcutDetails(targetId,targetMimeType,targetResourceKey)"
)
_TELLING = (
    "name", "mimeType", "size", "md5Checksum", "headRevisionId", "version", "createdTime", "modifiedTime", "owners",
    "lastModifyingUser", "webViewLink", "driveId",
)  # fmt: skip
"""What goes on as the document's metadata; a resource key is half a secret and does not."""
_GOOGLE = "application/vnd.google-apps."
_FOLDER = f"{_GOOGLE}folder"
_OFFICE = "application/vnd.openxmlformats-officedocument."


class Export(NamedTuple):
    """What a document of Google's own is exported as."""

    file_type: FileType
    mime: str


EXPORTS: dict[str, Export] = {
    f"{_GOOGLE}document": Export("docx", f"{_OFFICE}wordprocessingml.document"),
    f"{_GOOGLE}spreadsheet": Export("xlsx", f"{_OFFICE}spreadsheetml.sheet"),
    f"{_GOOGLE}presentation": Export("pptx", f"{_OFFICE}presentationml.presentation"),
}


@dataclass(frozen=True, slots=True)
class DriveFile:
    """A file, a folder or a shortcut. `size` in bytes and `md5` in hex are known of files with bytes of their own."""

    reference: Reference
    name: str
    mime: str
    version: str
    """What tells its contents apart: the MD5 or the revision of its bytes. A document of Google's own has a number
    only, which also rises for changes that nobody sees."""
    size: int | None
    md5: str
    trashed: bool
    drive_id: str
    url: str | None
    target: Reference | None
    """Where a shortcut leads."""
    target_is_folder: bool
    metadata: JsonObject

    @property
    def id(self) -> str:
        """Drive's id."""
        return self.reference.id

    @property
    def is_folder(self) -> bool:
        """Whether others may lie in it."""
        return self.mime == _FOLDER

    @property
    def export(self) -> Export | None:
        """How it is fetched if it has no bytes of its own; None for one that has, or that cannot be exported."""
        return EXPORTS.get(self.mime)

    @property
    def file_type(self) -> FileType | None:
        """What it is when it has been fetched; None for one that nobody here reads."""
        if self.mime.startswith(_GOOGLE):
            return self.export.file_type if self.export else None
        return file_type(self.mime, self.name)

    @property
    def local_name(self) -> str:
        """What it is called in a workspace; never by its name, which may be anything."""
        return f"{self.id}.{self.export.file_type}" if self.export else f"{self.id}{_plain(suffix(self.name))}"


def read_file(said: object) -> DriveFile:
    """A file from the API's JSON. `ConnectorError` for what is none."""
    if not isinstance(said, dict) or not is_id(said.get("id")) or not isinstance(said.get("mimeType"), str):
        raise ConnectorError("Google Drive described a file without an id or a type; try again later")
    shortcut = said.get("shortcutDetails")
    details = shortcut if isinstance(shortcut, dict) else {}
    size = _text(said, "size")
    link = _text(said, "webViewLink")
    return DriveFile(
        reference=Reference(said["id"], _text(said, "resourceKey")),
        name=quoted(said.get("name") or said["id"]),
        mime=said["mimeType"],
        version=_text(said, "md5Checksum") or _text(said, "headRevisionId") or _text(said, "version"),
        size=int(size) if size.isascii() and size.isdigit() else None,
        md5=_text(said, "md5Checksum").lower(),
        trashed=said.get("trashed") is True,
        drive_id=_text(said, "driveId"),
        url=link if link.startswith("https://") else None,
        target=Reference(details["targetId"], _text(details, "targetResourceKey"))
        if is_id(details.get("targetId"))
        else None,
        target_is_folder=details.get("targetMimeType") == _FOLDER,
        metadata={name: said[name] for name in _TELLING if name in said},
    )


def _text(said: JsonObject, name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""


def _plain(ending: str) -> str:
    return ending if ending[1:].isalnum() and ending.isascii() and len(ending) <= 10 else ""
