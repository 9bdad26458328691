"""Adding folders to those that may be read, as the command line and the page on this machine do it. No tool does."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent.core.errors import RequestError
from agent.core.readable_roots import AddedRoots
from agent.core.settings import Settings

_SYSTEM_FOLDERS: Final = tuple(
    Path(one) for one in ("/proc", "/sys", "/dev", "/etc", "/boot", "/run", "/private/etc", "/private/var")
)
_HOMES: Final = (Path("/home"), Path("/Users"))
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
            raise RootRefusedError(f"{written!r} is not a whole path: begin it with / or ~")
        folder = given.resolve(strict=True)
        if not folder.is_dir():
            raise RootRefusedError(f"{written!r} is a file: name the folder that it is in")
        next(folder.iterdir(), None)
    except FileNotFoundError as error:
        raise RootRefusedError(f"there is no folder {written!r} on the gateway's machine") from error
    except PermissionError as error:
        raise RootRefusedError(f"the gateway's user may not read {written!r}") from error
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL, an unknown ~user
        raise RootRefusedError(f"{written!r} is not a path of a folder: {error}") from error
    return folder


def _list_refusals(settings: Settings, given: Path, folder: Path) -> Iterator[str]:
    """Yields why a folder may not be added. It is checked as it is written and as it is without links."""
    home = Path.home().resolve()
    if home.is_relative_to(folder):
        yield f"it {'is' if home == folder else 'holds'} the home folder; {_NARROWER}"
    if folder in _HOMES or folder.parent in _HOMES:
        yield f"it holds a whole home folder; {_NARROWER}"
    if any(part.startswith(".") for path in (given, folder) for part in path.parts):
        yield "hidden folders (with a dot before the name) often hold keys and passwords"
    if any(folder.is_relative_to(one) for one in _SYSTEM_FOLDERS):
        yield "it belongs to the system"
    data = settings.data_dir.resolve()
    if folder.is_relative_to(data) or data.is_relative_to(folder):
        yield f"it holds Stepgate's own data, with its keys; {_NARROWER}"
    if settings.credentials_path is not None and settings.credentials_path.resolve().is_relative_to(folder):
        yield f"it holds the file of credentials; {_NARROWER}"
    if any(folder.is_relative_to(root.resolve()) for root in settings.readable_roots):
        yield "it may be read already"
