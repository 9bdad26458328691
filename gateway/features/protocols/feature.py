"""The feature `protocols`: Responses, Conversations, AG-UI, A2A, older completions, `/query`, `/tasks`."""

from gateway.feature import Door, Feature

FEATURE = Feature(
    name="protocols",
    needs=("documents",),
    build_services="gateway.features.protocols.hooks:build_tasks",
    background="gateway.features.protocols.hooks:watch_tasks",
    request_handlers="gateway.features.protocols.hooks:list_request_handlers",
    routes=(
        Door("gateway.features.protocols.doors.responses:router", place=20),
        Door("gateway.features.protocols.doors.client_conversations:router", place=30),
        Door("gateway.features.protocols.doors.completions:router", place=40),
        Door("gateway.features.protocols.doors.ag_ui:router", place=70),
        Door("gateway.features.protocols.doors.query:router", place=80),
        Door("gateway.features.protocols.doors.tasks:router", place=160),
        Door("gateway.features.protocols.doors.lazy_a2a:make_routes"),
    ),
)
