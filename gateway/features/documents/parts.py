"""What the feature `documents` has built, for its own doors and commands and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Parts

if TYPE_CHECKING:
    from gateway.features.documents.bootstrap_documents import Documents


def get_documents(parts: Parts) -> "Documents":
    """The collections of the gateway. Raises `ConfigError` if the feature is off."""
    documents: Documents = parts.get_part("documents")
    return documents
