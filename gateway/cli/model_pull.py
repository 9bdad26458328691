"""`stepgate models pull`: fetches a GGUF file from a model hub, by the hub's own client."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, format_install_hint
from agent.llm.gguf_parts import list_parts
from gateway.cli.session import load_command_settings

_CHUNK = 1 << 20
PREFERRED = ("q4_k_m", "q4_k_s", "q5_k_m", "q4_0", "q8_0")
"""Quantizations in the order in which one is chosen: the first keeps nearly all quality in a quarter of the size."""

_ADDITION = re.compile(r"mmproj|(?:^|/)(?:mtp|draft|imatrix|lora|adapter|(?:ggml-)?vocab)[-_.]", re.IGNORECASE)
"""What the names of files say that only go with a model: projectors of pictures, heads that predict tokens ahead."""


def pull(
    repository: Annotated[str, typer.Argument(help="OWNER/NAME on the hub, such as Qwen/Qwen2.5-7B-Instruct-GGUF.")],
    file: Annotated[str | None, typer.Option(help="The file; unset: the one with four bits a weight.")] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit; unset: the main branch.")] = None,
) -> None:
    """Fetch a GGUF file from Hugging Face (HF_ENDPOINT, HF_TOKEN), resume a partial one, and check the SHA-256."""
    if not EXTRAS["local"].is_installed:
        raise ConfigError(f"stepgate models pull needs the extra `local`; {format_install_hint('local')}")
    folder = load_command_settings().data_dir / "models"
    paths = fetch(repository, file, revision, folder)
    for path in paths:
        print(f"{path}: {path.stat().st_size / 1e6:,.0f} MB, checksum verified")
    print(f"Use it: stepgate models use {paths[0]}")


def fetch(repository: str, file: str | None, revision: str | None, folder: Path) -> list[Path]:
    """The paths of the fetched file, or of all its parts if it is split.

    Raises `ConfigError` if it cannot be had, or is not what the hub has.
    """
    from httpx import HTTPError  # noqa: PLC0415 - half a second, needed only here
    from huggingface_hub import HfApi, hf_hub_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        info = HfApi().model_info(repository, revision=revision, files_metadata=True)
        siblings = info.siblings or ()
        names = [one.rfilename for one in siblings]
        parts = list_parts(file or choose_file(names))
        if missing := [part for part in parts if len(parts) > 1 and part not in names]:
            raise ConfigError(f"{repository} lacks {missing[0]}, a part of the model; choose another file with --file")
        sums = {one.rfilename: one.lfs.sha256 for one in siblings if one.lfs is not None}
        # The commit, not the branch: the checksums are of those files.
        paths = [
            Path(hf_hub_download(repository, part, revision=info.sha or revision, local_dir=folder)) for part in parts
        ]
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, HTTPError, OSError) as error:
        raise ConfigError(f"{repository} cannot be fetched: {str(error).splitlines()[0][:300]}") from error
    for part, path in zip(parts, paths, strict=True):
        expected = sums.get(part)
        if expected is not None and compute_sha256(path) != expected:
            path.unlink()
            raise ConfigError(
                f"{path.name} does not match the hub's checksum (SHA-256 {expected}); it was removed: try again"
            )
    return paths


def choose_file(names: Iterable[str]) -> str:
    """The GGUF file to fetch if none is named, the first part of one that is split. Raises `ConfigError` if there is
    none, or no choice is plain.
    """
    models = [name for name in names if name.lower().endswith(".gguf") and not _ADDITION.search(name)]
    files = list(dict.fromkeys(list_parts(name)[0] for name in models))
    for kind in PREFERRED:
        for name in files:
            if kind in name.lower():
                return name
    if len(files) == 1:
        return files[0]
    choices = (
        f"it has {', '.join(files[:10])}; name one with --file" if files else "it has none; look for a GGUF repository"
    )
    raise ConfigError(f"no GGUF file of this repository could be chosen: {choices}")


def compute_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
