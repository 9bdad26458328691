"""`RecordItem`: an item that doors and tools show, made from a stored record, field by field."""

from collections.abc import Iterable
from typing import Self

from pydantic import ConfigDict

from agent.core.models import DeferredModel


class RecordItem(DeferredModel):
    """`Item.model_validate(record)` takes each field from the record's attribute of its name or `validation_alias`.

    Times of records are UTC seconds since 1970.
    """

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, val_temporal_unit="seconds")

    @classmethod
    def from_records(cls, records: Iterable[object]) -> list[Self]:
        """An item for each record."""
        return [cls.model_validate(record) for record in records]
