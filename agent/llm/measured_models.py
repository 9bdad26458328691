"""`MeasuredModels`: what was measured of models, in a JSON file of the data folder."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent.core.atomic_write import write_atomically
from agent.core.errors import ConfigError
from agent.llm.profile import MeasuredModel

MAX_MEASURED = 50
_RECORDS = TypeAdapter(list[MeasuredModel])


class MeasuredModels:
    """The records of one file, the newest first. Its methods block for a short time: call them from a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[MeasuredModel]:
        """The records. A file that cannot be read counts as empty: the models are measured again."""
        try:
            return _RECORDS.validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return []

    def find(self, place: str | None, model: str) -> MeasuredModel | None:
        """The record of a model at an endpoint or in a file; None if it was not measured."""
        return next((one for one in self.read() if (one.base_url, one.model) == (place, model)), None)

    def save(self, record: MeasuredModel) -> None:
        """Stores a record in place of an earlier one of the same model. Raises `ConfigError`."""
        others = [one for one in self.read() if (one.base_url, one.model) != (record.base_url, record.model)]
        try:
            write_atomically(self._path, _RECORDS.dump_json([record, *others][:MAX_MEASURED], indent=2))
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from error
