"""The parts that the feature `documents` has built, for itself and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from gateway.features.documents.bootstrap_documents import Documents

get_documents: Part["Documents"] = Part("documents")
"""The collections of the gateway."""
