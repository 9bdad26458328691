"""`check_credentials`: whether an owner may have a source read with the credentials that the source names."""

from agent.storage.credentials import may_use_credential
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError
from gateway.features.documents.engine.search.models import ConnectorInput


def check_credentials(owner: str, request: ConnectorInput) -> None:
    """Raises `ConnectorAuthError` (403) for a credential that is not the owner's.

    The owner of a source chooses its address too, to which the secret would be sent.
    """
    for name in (request.credentials_id, request.password_id):
        if name is not None and not may_use_credential(owner, name):
            raise ConnectorAuthError(
                f"the credential {name[:80]!r} does not belong to {owner!r}; the operator can store one named "
                f"{owner}/NAME"
            )
