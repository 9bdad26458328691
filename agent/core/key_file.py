"""`load_or_create_key`: a random secret in a file of the data folder, which all processes of a gateway share."""

import os
import secrets
from pathlib import Path

KEY_BYTES = 32


def load_or_create_key(path: Path) -> str:
    """The key in this file. Creates the file if it is missing, readable by its owner only. Raises `OSError`."""
    try:
        return path.read_text("ascii")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(secrets.token_hex(KEY_BYTES), "ascii")
    try:
        os.link(draft, path)  # unlike a rename, this fails if another worker was first; then its key is used
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text("ascii")
