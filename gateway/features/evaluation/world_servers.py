"""An MCP server of the evaluation's worlds: `python -m gateway.features.evaluation.world_servers SET NAME FOLDER`.

It keeps its state in `FOLDER/state.json`, which all servers of a world share.
"""

import asyncio
import sys
from pathlib import Path

from gateway.features.evaluation.state_file import StateFile
from gateway.features.evaluation.task_sets import load_servers

if __name__ == "__main__":
    set_name, server_name, folder_name = sys.argv[1:]
    asyncio.run(load_servers(set_name)[server_name](StateFile(Path(folder_name))).run_stdio_async())
