"""`list_secrets`: the names of secrets, and whether they are configured. Never a value."""

import asyncio
from typing import ClassVar

from pydantic import Field

from agent.core.errors import ToolError
from agent.core.models import DeferredModel
from agent.storage.credentials import CredentialError
from agent.tools import READ_ONLY, ToolContext
from agent.tools.stored_things import Arguments, StoredThingTool
from gateway.features.studio.engine.secret_names import SecretKind, SecretName, SecretNames
from gateway.features.studio.tools.rooms import AuthorizeEditor


class ListSecretsInput(Arguments):
    """Arguments of `list_secrets`: none."""


class SecretItem(DeferredModel):
    """A secret by its name. `problem` says why it cannot be used; `used_by` are rooms whose servers name it."""

    name: str
    kind: SecretKind
    configured: bool
    problem: str = ""
    used_by: list[str] = Field(default=[])


class ListSecretsOutput(DeferredModel):
    """The secrets that the caller may name."""

    secrets: list[SecretItem]


class ListSecretsTool(StoredThingTool[ListSecretsInput, ListSecretsOutput]):
    name = "list_secrets"
    description = "List the names of this gateway's secrets and whether each is configured. Values are never shown."
    annotations = READ_ONLY
    keywords: ClassVar[tuple[str, ...]] = ("secret", "secrets", "credential", "credentials", "key", "token", "studio")

    def __init__(self, secrets: SecretNames, authorize: AuthorizeEditor) -> None:
        super().__init__()
        self._secrets, self._authorize = secrets, authorize

    async def check(self, args: ListSecretsInput, context: ToolContext) -> None:
        """Raises `ToolDeniedError` for callers who may not edit rooms."""
        await self._authorize(context)

    async def run(self, args: ListSecretsInput, context: ToolContext) -> ListSecretsOutput:
        editor = await self._authorize(context)
        try:
            secret_names = await asyncio.to_thread(self._secrets.list_secrets, editor.owner)
        except CredentialError as error:
            raise ToolError(error.message, agent_id=self.name) from error
        return ListSecretsOutput(secrets=[to_secret_item(secret) for secret in secret_names])

    def format_text(self, output: ListSecretsOutput) -> str:
        return "\n".join(
            f"- {one.name} ({one.kind}): {'configured' if one.configured else one.problem or 'not configured'}"
            for one in output.secrets
        )


def to_secret_item(secret: SecretName) -> SecretItem:
    """A secret as it is shown."""
    return SecretItem(
        name=secret.name,
        kind=secret.kind,
        configured=secret.is_configured,
        problem=secret.problem,
        used_by=list(secret.used_by),
    )
