"""The feature `fleet`: the queue, its workers, several processes behind one port."""

from gateway.feature import Command, Door, Feature, Page, PagePart

FEATURE = Feature(
    name="fleet",
    build="gateway.features.fleet.bootstrap_queue:build_queue",
    dispatch="gateway.features.fleet.bootstrap_queue:find_dispatch",
    doctor_checks="gateway.features.fleet.commands.doctor:check_queue",
    middleware="gateway.features.fleet.serve_workers.worker_sessions:WorkerSessionMiddleware",
    serve_workers="gateway.features.fleet.serve_workers.worker_supervisor:run_workers",
    routes=(Door("gateway.features.fleet.doors.queue:router", place=320),),
    page=Page(
        folder="gateway.features.fleet:page",
        studio=(PagePart("queue", "Queue", "queue.js", "admin", place=60),),
    ),
    commands={
        "worker": Command(
            "gateway.features.fleet.commands.worker:worker",
            "Take work from the queue (AGENT_DISPATCH=queue). SIGTERM and Ctrl-C hand it back.",
            place=20,
        ),
        "queue": Command(
            "gateway.features.fleet.commands.queue:app",
            "Show the queue of runs and ingestion: lanes, workers, dead letters.",
            place=160,
        ),
    },
    owned_tables=("queue_tags",),
)
