"""The feature `protocols`: Responses, Conversations, AG-UI, A2A, older completions, `/query`, `/tasks`."""

from gateway.feature import Door, Feature, FixedLimit, Revision

_RUNS_VIEW = (
    "CREATE VIEW task_run_artifacts AS SELECT run_id, task_id, number, status, {created} AS created_at, "
    "{updated} AS updated_at, state AS state_json, plan AS plan_json, tool_results AS tool_results_json, "
    "verification AS verification_json FROM task_runs"
)
"""What `_RUN_COLUMNS` replace."""
_ISO = "strftime('%Y-%m-%dT%H:%M:%fZ', {name}, 'unixepoch')"
_TIMES = ("created", "updated")
_DOCUMENTS = ("state", "plan", "tool_results", "verification")
_RUN_COLUMNS = (
    *((f"{one}_at", "TEXT", _ISO.format(name=one), "TIMESTAMPTZ", f"to_timestamp({one})") for one in _TIMES),
    *((f"{one}_json", "TEXT", one, "JSON", f"{one}::json") for one in _DOCUMENTS),
)
"""The runs of tasks for people with SQL: times as text or timestamps, documents as JSON. Generated columns rather
than a view of this name: processes of the version before go on writing the table while a database is upgraded."""
_DROP_VIEW = "DROP VIEW task_run_artifacts"

FEATURE = Feature(
    name="protocols",
    imports=("documents",),
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
    limits=(
        FixedLimit(
            "items of the input at `/v1/responses`",
            "gateway.features.protocols.doors.response_requests:MAX_ITEMS",
            "400",
        ),
        FixedLimit(
            "values in the JSON of an AG-UI body, its state not counted",
            "gateway.features.protocols.doors.ag_ui:MAX_VALUES",
            "413",
        ),
        FixedLimit("values in the JSON of an A2A call", "gateway.features.protocols.doors.lazy_a2a:MAX_VALUES", "413"),
    ),
    revisions=(
        Revision(
            "task_run_artifacts",
            (_RUNS_VIEW.format(created=_ISO.format(name="created"), updated=_ISO.format(name="updated")),),
            (_RUNS_VIEW.format(created="to_timestamp(created)", updated="to_timestamp(updated)"),),
        ),
        Revision(
            "task_runs_columns",
            (
                _DROP_VIEW,
                *(
                    f"ALTER TABLE task_runs ADD COLUMN {name} {kind} GENERATED ALWAYS AS ({value}) VIRTUAL"
                    for name, kind, value, _, _ in _RUN_COLUMNS
                ),
            ),
            (
                _DROP_VIEW,
                "ALTER TABLE task_runs "
                + ", ".join(
                    f"ADD COLUMN {name} {kind} GENERATED ALWAYS AS ({value}) STORED"
                    for name, _, _, kind, value in _RUN_COLUMNS
                ),
            ),
        ),
    ),
    owned_tables=("task_runs", "tasks"),
    retention="gateway.features.protocols.engine.retention:RETENTION",
)
