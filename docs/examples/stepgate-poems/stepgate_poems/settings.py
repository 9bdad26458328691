"""The settings of the feature: `AGENT_POEMS_LISTED`."""

from pydantic import BaseModel, Field


class PoemSettings(BaseModel):
    """Favourite poems."""

    poems_listed: int = Field(default=100, ge=1, le=1_000, description="most titles that `favourite_poems` lists")
