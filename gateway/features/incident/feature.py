"""The feature `incident`: tools and gates of the incident desk."""

from gateway.feature import Command, Door, Feature

FEATURE = Feature(
    name="incident",
    needs=("documents",),
    rooms=("incident",),
    tools="gateway.features.incident.hooks:list_tools",
    extensions="gateway.features.incident.hooks:list_extensions",
    routes=(Door("gateway.features.incident.doors.example:router", place=145),),
    commands={
        "corpus": Command(
            "gateway.features.incident.commands.corpus:app",
            "Table rows as documents: prepare a corpus, build a collection from it, query it.",
            place=310,
        ),
    },
)
