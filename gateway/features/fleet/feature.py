"""The feature `fleet`: the queue, its workers, several processes behind one port."""

from gateway.feature import Command, Door, Feature

FEATURE = Feature(
    name="fleet",
    routes=(Door("gateway.features.fleet.doors.queue:router", place=320),),
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
)
