"""`Webhook`: the address that is notified of the end of a run."""

from pydantic import Field

from agent.core.models.words import FrozenModel

MAX_WEBHOOK_URL_CHARS = 2_000


class Webhook(FrozenModel):
    """Where the end of a run is posted. `secret_name` names a credential of the type `webhook` that signs the post."""

    url: str = Field(min_length=1, max_length=MAX_WEBHOOK_URL_CHARS, description="http or https address")
    secret_name: str | None = Field(
        default=None, min_length=1, max_length=200, description="credential that signs the post; unset: not signed"
    )
