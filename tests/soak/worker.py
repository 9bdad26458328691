"""A worker of the fleet under fire: `stepgate worker` with the tools whose effects the ledger writes down.

`python -m tests.soak.worker`, with the ledger's URL in `SOAK_LEDGER`.
"""

import asyncio
import os

from agent.core.settings import Settings
from gateway.cli.worker_server import run_worker
from tests.soak.gateway import CrashPoints, arm

if __name__ == "__main__":
    arm(os.environ["SOAK_LEDGER"], CrashPoints(""))
    asyncio.run(run_worker(Settings(_env_file=None)))
