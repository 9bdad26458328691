"""`SavedModels`: the models that the operator chose, as an ordered list in a YAML file of the data folder.

Each entry serves the roles `fast`, `high` or both; within a role the first one is asked first, the others if it fails.
The file holds no key: an entry names a credential.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from agent.core.atomic_write import write_atomically
from agent.core.bounded_yaml import YamlError, load_yaml_mapping
from agent.core.errors import ConfigError
from agent.core.model_endpoints import NAME, ExtraBody
from agent.core.models import FrozenModel
from agent.core.settings.field_types import HttpUrl
from agent.core.value_faults import describe_faults

Role = Literal["fast", "high"]
BOTH_ROLES: tuple[Role, ...] = ("fast", "high")
MAX_SAVED = 20


ModelName = Annotated[str, Field(max_length=500, pattern=r"^[^,\n]+$", description="without a comma")]
"""A model's name. Commas separate the models of a role."""


class SavedModel(FrozenModel):
    """A model at an endpoint, or in a file that the gateway serves itself."""

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$", description="short name of the entry")]
    model: ModelName = "local"
    base_url: HttpUrl | None = None
    file: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    """Path of a GGUF file."""
    roles: Annotated[tuple[Role, ...], Field(min_length=1)] = BOTH_ROLES
    credential: str | None = None
    """Name of the credential that holds the endpoint's key."""
    product: Annotated[str, Field(max_length=100)] = ""
    extra_body: ExtraBody = Field(default={})
    """Further fields of every request."""
    vision: bool = False
    """Whether it sees pictures, as its trial has shown."""

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        if (self.base_url is None) == (self.file is None):
            raise ValueError("name either the endpoint's base_url or the file of a model")
        return self


class SavedModels:
    """The entries of one file. Reading and writing block for a short time: call them from a thread."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get_stamp(self) -> tuple[int, ...] | None:
        """A version that changes with every change of the file; None if there is no file."""
        return get_stamp(self.path)

    def read(self) -> tuple[SavedModel, ...]:
        """The entries in their order; none if there is no file. Raises `ConfigError` if it cannot be used."""
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path} cannot be read: {error}") from error
        try:
            entries = load_yaml_mapping(text).get("models") or []
            if not isinstance(entries, list) or len(entries) > MAX_SAVED:
                raise YamlError(f"`models` must be a list of at most {MAX_SAVED} entries")
            saved = tuple(SavedModel.model_validate(entry) for entry in entries)
        except ValidationError as error:
            raise ConfigError(f"{self.path}: {'; '.join(describe_faults(error))}") from error
        except YamlError as error:
            raise ConfigError(f"{self.path}: {error}") from error
        names = [entry.name for entry in saved]
        if len({*names}) < len(names):
            raise ConfigError(f"{self.path}: two entries have the same name")
        return saved

    def write(self, entries: Sequence[SavedModel]) -> None:
        """Replaces the file at once. Raises `ConfigError` if it cannot be written."""
        if len(entries) > MAX_SAVED:
            raise ConfigError(f"at most {MAX_SAVED} models are saved; remove one first: stepgate models remove NAME")
        listed = [entry.model_dump(mode="json", exclude_defaults=True) for entry in entries]
        head = (
            "# Models of this gateway, in the order in which they are asked. `stepgate models` and the page write it.\n"
        )
        text = head + yaml.safe_dump({"models": listed}, sort_keys=False, allow_unicode=True)
        try:
            write_atomically(self.path, text)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from error

    def put_first(self, entry: SavedModel) -> None:
        """Saves an entry at the head of the list, in place of one with the same name. The roles that it does not serve
        stay with the others.
        """
        self.write((entry, *(one for one in self.read() if one.name != entry.name)))

    def remove(self, name: str) -> SavedModel | None:
        """Removes an entry and returns it; None for an unknown name."""
        entries = self.read()
        removed = next((one for one in entries if one.name == name), None)
        if removed is not None:
            self.write([one for one in entries if one is not removed])
        return removed


def get_stamp(path: Path) -> tuple[int, ...] | None:
    """A version that changes with every change of a file; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
