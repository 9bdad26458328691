"""Reads settings from variables, of the environment or of `.env`: those that are set, and no others."""

import contextlib
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource


class VariableSource(PydanticBaseSettingsSource):
    """Reads what pydantic's own source of variables would. That one examines the types of all fields each time, for
    nine tenths of the time that settings take, and stops where a text is not the JSON that a field needs. Here the
    text stays as it is, and the validation says what is wrong with it.
    """

    def __init__(self, settings: type[BaseSettings], source: EnvSettingsSource) -> None:
        super().__init__(settings)
        self._source = source

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of the field's variable, None if it is not set."""
        value: Any = self._source.env_vars.get(f"{self._source.env_prefix}{field_name}".lower())
        if value is not None:
            with contextlib.suppress(ValueError):
                value = self._source.prepare_field_value(field_name, field, value, value_is_complex=False)
        return value, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Every setting whose variable is set."""
        values = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in values.items() if value is not None}
