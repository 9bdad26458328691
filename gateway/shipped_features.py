"""The features that this package ships. One whose folder is not there is left out: a wheel has no evaluation."""

SHIPPED = (
    "gateway.features.documents.feature:FEATURE",
    "gateway.features.pipeline_builder.feature:FEATURE",
    "gateway.features.incident.feature:FEATURE",
    "gateway.features.studio.feature:FEATURE",
    "gateway.features.recipes.feature:FEATURE",
    "gateway.features.protocols.feature:FEATURE",
    "gateway.features.schedules.feature:FEATURE",
    "gateway.features.fleet.feature:FEATURE",
    "gateway.features.evaluation.feature:FEATURE",
)

CLONE_ONLY = {"eval": "gateway.features.evaluation"}
"""The commands of features that the wheel leaves out, with their package."""
