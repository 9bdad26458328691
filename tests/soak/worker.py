"""A worker of the fleet under fire: `stepgate worker` with the tools whose effects the ledger writes down.

`python -m tests.soak.worker`, with the ledger's URL in `SOAK_LEDGER`, and in `SOAK_HOST` a name for its machine, if it
is to be another one: of a worker there nobody can see by its pid that it has ended.
"""

import asyncio
import os
import socket

from agent.core.settings import Settings
from gateway.features.fleet.commands.worker_server import run_worker
from tests.soak.gateway import CrashPoints, arm

if __name__ == "__main__":
    host = os.environ.get("SOAK_HOST") or socket.gethostname()
    socket.gethostname = lambda: host
    arm(os.environ["SOAK_LEDGER"], CrashPoints(""))
    asyncio.run(run_worker(Settings(_env_file=None)))
