"""Reads secrets from files: `AGENT_LLM_API_KEY_FILE=/run/secrets/key` sets `AGENT_LLM_API_KEY` to the file's content.

Container platforms mount secrets as files. A process's environment can be read by more programs than such a file.
"""

from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource

from agent.core.errors import ConfigError
from agent.core.settings.aliases import get_variable

SUFFIX: Final = "_FILE"
MAX_BYTES: Final = 64 * 1024
"""Longest secret in bytes. A larger file was named by mistake."""


class SecretFileSource(PydanticBaseSettingsSource):
    """Reads each secret setting from the file that `<NAME>_FILE` names, from the environment first, then from `.env`.

    Raises `ConfigError` for a file that cannot be read, is too long or no text, and where the setting itself is set
    in the same place: two values for one secret are a mistake that must not be resolved silently.
    """

    def __init__(self, settings: type[BaseSettings], *sources: PydanticBaseSettingsSource) -> None:
        super().__init__(settings)
        self._sources = [source for source in sources if isinstance(source, EnvSettingsSource)]

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The secret of a field, or None where no file is named for it."""
        name = get_variable(field_name)
        for source in self._sources:
            path = source.env_vars.get(f"{name}{SUFFIX}".lower())
            if path is None or not path.strip():
                continue
            variable = f"{name}{SUFFIX}".upper()
            if (source.env_vars.get(name.lower()) or "").strip():
                raise ConfigError(f"{variable} and {name.upper()} are both set; unset one of them")
            return _read_secret(variable, Path(path.strip()).expanduser()), field_name, False
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Every secret that has a file."""
        fields = {name: field for name, field in self.settings_cls.model_fields.items() if is_secret(field)}
        values = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in values.items() if value is not None}


def is_secret(field: FieldInfo) -> bool:
    """Whether the values of a setting are secrets."""
    return field.annotation is SecretStr or SecretStr in getattr(field.annotation, "__args__", ())


def _read_secret(shown: str, path: Path) -> str:
    """The text of a file without the white space around it, as editors add a line end."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{shown}: {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: {path} is not UTF-8 text") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{shown}: {path} is larger than {MAX_BYTES // 1024} KiB; it cannot be a secret")
    if not text:
        raise ConfigError(f"{shown}: {path} is empty")
    return text
