"""Adding folders to those that may be read, as the command line and the page on this machine do it. No tool does.

Folders are compared as the file system knows them, not by their names alone: `/etc` is `/private/etc` on macOS, where
the case of letters does not count either, `/home` may be a link to `/var/home`, and a folder can be mounted twice.
"""

import os
import pwd
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent.core.errors import RequestError
from agent.core.readable_roots import AddedRoots
from agent.core.settings import Settings

_SYSTEM_FOLDERS: Final = tuple(
    Path(one)
    for one in (
        "/proc", "/sys", "/dev", "/etc", "/boot", "/run", "/var/run", "/var/spool", "/var/mail", "/var/backups",
        "/private/etc", "/private/var", "/System", "/Library",
    )
)  # fmt: skip
"""Refused with all that is in them, and so is a folder that holds one of them."""
_WIDE_FOLDERS: Final = tuple(
    Path(one)
    for one in ("/var/lib", "/tmp", "/var/tmp", "/private/tmp", "/usr", "/opt", "/srv", "/mnt", "/media", "/Volumes")  # noqa: S108 - refused
)
"""Folders that many programs or disks share: only a folder in them is added."""
_HOMES: Final = (Path("/home"), Path("/Users"), Path("/var/home"), Path("/export/home"), Path("/usr/home"))
_ROOT_HOMES: Final = (Path("/root"), Path("/var/root"))
_NARROWER: Final = "choose a folder in it that holds what may be read"


class RootRefusedError(RequestError):
    """Raised for a folder that cannot be made readable."""

    code = "ERR_VALIDATION"

    def __init__(self, message: str) -> None:
        super().__init__(message, agent_id="file_roots")


def find_settings_obstacle(settings: Settings) -> str | None:
    """Why no folder can be added to this gateway, by anyone; None if some can."""
    if settings.file_roots:
        return "AGENT_FILE_ROOTS names the folders that may be read: add the folder there and start the gateway again"
    if settings.dispatch != "local":
        return "several machines work for this gateway: name the folders in AGENT_FILE_ROOTS of each"
    return None


def add_root(settings: Settings, written: str) -> Path:
    """Makes a folder readable at once, in all processes. Raises `RootRefusedError` with the reason, and `ConfigError`
    if it cannot be saved.
    """
    if obstacle := find_settings_obstacle(settings):
        raise RootRefusedError(obstacle)
    folder = _find_folder(written)
    for reason in _list_refusals(settings, Path(written).expanduser(), folder):
        raise RootRefusedError(f"{str(folder)!r} cannot be added: {reason}")
    added = AddedRoots(settings.added_roots_path)
    added.write((*added.read(), folder))
    return folder


def remove_root(settings: Settings, written: str) -> bool:
    """Takes an added folder off the list, whether it still exists or not; False if it is not on it."""
    added = AddedRoots(settings.added_roots_path)
    current, folder = added.read(), Path(written.strip())
    with suppress(RuntimeError):  # the home of a user that does not exist
        folder = folder.expanduser()
    remaining = [root for root in current if root != folder]
    if len(remaining) < len(current):
        added.write(remaining)
    return len(remaining) < len(current)


def _find_folder(written: str) -> Path:
    given = Path(written.strip())
    try:
        given = given.expanduser()
        if not given.is_absolute():
            raise RootRefusedError(f"{written!r} is not an absolute path: begin it with / or ~")
        folder = given.resolve(strict=True)
        if not folder.is_dir():
            raise RootRefusedError(f"{written!r} is a file: name the folder that it is in")
        next(folder.iterdir(), None)
    except FileNotFoundError as error:
        raise RootRefusedError(f"there is no folder {written!r} on the gateway's machine") from error
    except PermissionError as error:
        raise RootRefusedError(f"the gateway's user may not read {written!r}") from error
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL, an unknown ~user
        raise RootRefusedError(f"{written!r} is not a folder path: {error}") from error
    return folder


def _list_refusals(settings: Settings, given: Path, folder: Path) -> Iterator[str]:
    """Yields why a folder may not be added. It is checked as it is written and as it is without links."""
    yield from _list_home_refusals(folder)
    if any(part.startswith(".") and part != ".." for path in (given, folder) for part in path.parts):
        yield "hidden folders (with a dot before the name) often hold keys and passwords"
    if any(_is_within(folder, one) for one in _SYSTEM_FOLDERS):
        yield "it belongs to the system"
    if any(_is_within(one, folder) for one in _SYSTEM_FOLDERS):
        yield f"it holds folders of the system; {_NARROWER}"
    if _is_any(folder, (*_WIDE_FOLDERS, Path(tempfile.gettempdir()))):
        yield f"many programs share it; {_NARROWER}"
    yield from _list_own_refusals(settings, folder)


def _list_home_refusals(folder: Path) -> Iterator[str]:
    homes = _list_own_homes()
    if _is_any(folder, homes):
        yield f"it is the home folder; {_NARROWER}"
    if any(_is_within(home, folder) for home in homes):
        yield f"it holds the home folder; {_NARROWER}"
    if _is_any(folder, (*_HOMES, *_ROOT_HOMES)) or _is_any(folder.parent, _HOMES):
        yield f"it holds a whole home folder; {_NARROWER}"


def _list_own_refusals(settings: Settings, folder: Path) -> Iterator[str]:
    """Yields what of Stepgate's own the folder holds, and whether it is a root already."""
    if _is_within(folder, settings.data_dir) or _is_within(settings.data_dir, folder):
        yield f"it holds Stepgate's own data, with its keys; {_NARROWER}"
    if _is_within(settings.credentials_file, folder):
        yield f"it holds the file of credentials; {_NARROWER}"
    if _is_within(settings.mcp_servers_path, folder) or _is_within(settings.rooms_path, folder):
        yield f"it holds settings of Stepgate, which may hold keys; {_NARROWER}"
    if any(_is_within(folder, root) for root in settings.readable_roots):
        yield "it is already readable"


def _list_own_homes() -> tuple[Path, ...]:
    """The home folder that the environment names, and the one of this process's user."""
    homes = [Path.home()]
    with suppress(KeyError):  # a user without an entry, as in some containers
        homes.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return tuple(home for home in homes if home != Path("/"))


def _is_any(folder: Path, others: Iterable[Path]) -> bool:
    """Whether a folder is one of the others, by whatever names."""
    identity = _identify(folder)
    return any(folder == other or (identity is not None and identity == _identify(other)) for other in others)


def _is_within(path: Path, folder: Path) -> bool:
    """Whether a file or folder, which need not exist, is a folder or somewhere below it."""
    try:
        whole = path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        whole = path.absolute()
    return any(_is_any(one, (folder,)) for one in (whole, *whole.parents, *path.absolute().parents))


def _identify(path: Path) -> tuple[int, int] | None:
    """The device and number of a file or folder, links followed; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
