"""Where things are stored, and for how long."""

from pathlib import Path

from pydantic import BaseModel, Field, SecretStr

from agent.core.settings.field_types import HomePath, HttpUrl


class StoreSettings(BaseModel):
    """Where things are stored, and for how long."""

    data_dir: HomePath = Field(default=Path("data"), description="folder for everything that the gateway stores")
    database_url: SecretStr | None = Field(
        default=None, description="postgresql://... stores runs there; unset: SQLite in the data folder"
    )
    objects_url: str | None = Field(
        default=None,
        description=(
            "store of uploaded files, which several machines share: s3://bucket/prefix (needs the extra `scale`) or "
            "file:///folder; unset: the data folder"
        ),
    )
    objects_endpoint: HttpUrl | None = Field(
        default=None,
        description=(
            "address of an S3-compatible store other than Amazon's, e.g. http://minio:9000; unset: AWS_ENDPOINT_URL"
        ),
    )
    objects_region: str | None = Field(default=None, description="region of that bucket")
    objects_key_id: str | None = Field(default=None, description="id of its access key; unset: the role of the machine")
    objects_secret: SecretStr | None = Field(default=None, description="secret of its access key")
    redis_url: SecretStr | None = Field(
        default=None,
        description=(
            "redis://... shares conversation messages and limits of keys between gateways; unset: each "
            "process has its own"
        ),
    )
    redis_prefix: str = Field(
        default="stepgate", min_length=1, description="prefix of the gateway's keys in that Redis"
    )
    keep_prompts: float = Field(
        default=0,
        ge=0,
        description=(
            "days for which the messages to models and their raw replies are kept, for the run's owner and the scope "
            "`admin` (docs/page.md); 0: not kept"
        ),
    )
    keep_days: float = Field(
        default=0,
        ge=0,
        description=(
            "days after which ended runs, idle conversations and tasks are deleted (docs/retention.md); 0: they are "
            "kept for ever"
        ),
    )

    @property
    def database_path(self) -> Path:
        """The embedded database."""
        return self.data_dir / "stepgate.db"
