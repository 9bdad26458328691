"""The feature `incident`: tools and gates of the incident desk."""

from gateway.feature import Feature

FEATURE = Feature(
    name="incident",
    needs=("documents",),
    rooms=("incident",),
    tools="gateway.features.incident.hooks:list_tools",
    extensions="gateway.features.incident.hooks:list_extensions",
)
