"""Checks paths given by remote users: only those beneath the operator's roots may be read, and none that is hidden."""

import os
from collections.abc import Sequence
from pathlib import Path

from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorNotFoundError
from gateway.features.documents.engine.search.models import ConnectorInput


def resolve_allowed(request: ConnectorInput, roots: Sequence[Path]) -> ConnectorInput:
    """The request with an absolute path; other kinds of sources unchanged.

    A relative path is looked up below each root. All links are resolved before the check. Raises `ConnectorAuthError`
    (403) for a path outside the roots, `ConnectorNotFoundError` if nothing is there.
    """
    if request.source_type != "local":
        return request
    given = Path(request.source_identifier)
    for root in roots:
        try:
            base = root.resolve(strict=True)
            path = (base / given).resolve(strict=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
            raise ConnectorNotFoundError(f"{request.source_identifier!r} is not a path: {error}") from error
        if path.is_relative_to(base):
            if any(part.startswith(".") for part in path.relative_to(base).parts):
                raise ConnectorAuthError(
                    f"{request.source_identifier!r} is hidden (with a dot before the name): such files often hold "
                    "keys, and are not read"
                )
            return request.model_copy(update={"source_identifier": str(path)})
    meant = os.path.normpath(given)
    if Path(meant).is_absolute() and not any(Path(meant).is_relative_to(root.absolute()) for root in roots):
        raise ConnectorAuthError(
            f"{request.source_identifier!r} is not in the folders that may be read here; put the files there, or ask "
            "the operator to add theirs (AGENT_FILE_ROOTS; `stepgate doctor` lists the folders)"
        )
    raise ConnectorNotFoundError(
        f"there is no {request.source_identifier!r} below the folders that may be read (AGENT_FILE_ROOTS)"
    )
