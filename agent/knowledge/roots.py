"""Which paths may be read for somebody who is not at this machine: those beneath the roots that the operator allows."""

import os
from collections.abc import Sequence
from pathlib import Path

from agent.knowledge.errors import ConnectorAuthError, ConnectorNotFoundError
from agent.knowledge.models import ConnectorInput


def beneath(request: ConnectorInput, roots: Sequence[Path]) -> ConnectorInput:
    """The request with its path made absolute; requests for other kinds of sources as they are. A relative path is
    looked for below each root. The path is followed through every link before it is judged.

    `ConnectorAuthError` (403) for a path that lies in no root, `ConnectorNotFoundError` where there is nothing."""
    if request.source_type != "local":
        return request
    given = Path(request.source_identifier)
    named = ", ".join(str(root) for root in roots)
    for root in roots:
        try:
            base = root.resolve(strict=True)
            path = (base / given).resolve(strict=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
            raise ConnectorNotFoundError(f"{request.source_identifier!r} is no path: {error}") from error
        if path.is_relative_to(base):
            return request.model_copy(update={"source_identifier": str(path)})
    meant = os.path.normpath(given)
    if Path(meant).is_absolute() and not any(Path(meant).is_relative_to(root.absolute()) for root in roots):
        raise ConnectorAuthError(
            f"{request.source_identifier!r} is not in the folders that may be read here: {named}; put the files there, "
            "or ask the operator to add theirs (AGENT_FILE_ROOTS)"
        )
    raise ConnectorNotFoundError(f"there is no {request.source_identifier!r} below {named}")
