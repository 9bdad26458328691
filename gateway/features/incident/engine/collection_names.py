"""The names of the collections that the incident tools search."""

from typing import NamedTuple


class IncidentCollections(NamedTuple):
    """The collections that the incident tools search: one of policies, runbooks and documents, and one of tickets."""

    knowledge: str
    issues: str


OWN_COLLECTIONS = IncidentCollections("company", "issues")
EXAMPLE_COLLECTIONS = IncidentCollections("example-company", "example-issues")
"""Those of the example company: names of their own, so that it never mixes with a company's documents."""
