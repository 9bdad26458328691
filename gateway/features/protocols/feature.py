"""The feature `protocols`: Responses, Conversations, AG-UI, A2A, older completions, `/query`, `/tasks`."""

from gateway.feature import Door, Feature, Revision

_RUNS_VIEW = (
    "CREATE VIEW task_run_artifacts AS SELECT run_id, task_id, number, status, {created} AS created_at, "
    "{updated} AS updated_at, state AS state_json, plan AS plan_json, tool_results AS tool_results_json, "
    "verification AS verification_json FROM task_runs"
)
"""The runs of tasks for people with SQL: times as text or timestamps, each document in a column of its own."""
_ISO = "strftime('%Y-%m-%dT%H:%M:%fZ', {name}, 'unixepoch')"

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
    revisions=(
        Revision(
            "task_run_artifacts",
            (_RUNS_VIEW.format(created=_ISO.format(name="created"), updated=_ISO.format(name="updated")),),
            (_RUNS_VIEW.format(created="to_timestamp(created)", updated="to_timestamp(updated)"),),
        ),
    ),
)
