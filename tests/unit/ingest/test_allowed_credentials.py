"""Credentials of sources: an owner's own, or all for the operator."""

import pytest

from gateway.features.documents.engine.ingest.allowed_credentials import check_credentials
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError
from gateway.features.documents.engine.search.models import ConnectorInput


def source(**credentials: str) -> ConnectorInput:
    return ConnectorInput(source_type="web", source_identifier="https://example.org/", **credentials)


@pytest.mark.parametrize(
    ("owner", "credentials"),
    [
        ("local", {"credentials_id": "wiki"}),
        ("local", {"credentials_id": "anna/wiki"}),
        ("anna", {"credentials_id": "anna/wiki", "password_id": "anna/vault"}),
        ("anna", {}),
    ],
)
def test_an_owner_may_use_what_is_theirs(owner: str, credentials: dict[str, str]) -> None:
    check_credentials(owner, source(**credentials))


@pytest.mark.parametrize(
    ("owner", "credentials"),
    [
        ("anna", {"credentials_id": "wiki"}),
        ("anna", {"credentials_id": "bert/wiki"}),
        ("anna", {"credentials_id": "anna/wiki", "password_id": "vault"}),
        ("anna", {"credentials_id": "annabel/wiki"}),
    ],
)
def test_what_is_not_theirs_would_be_sent_where_they_like(owner: str, credentials: dict[str, str]) -> None:
    with pytest.raises(ConnectorAuthError, match="does not belong to 'anna'; the operator can store one named anna/"):
        check_credentials(owner, source(**credentials))
