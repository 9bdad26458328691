"""The child process: serves one GGUF file with llama.cpp's own server, on a Unix socket, until its parent ends.

`python -m gateway.local_engine.child` reads one JSON line of options from stdin, writes one on stdout (`ready`,
with the seconds that loading took) and ends when stdin does: however the gateway ends, the model leaves the memory.
Imports nothing of the engine, so that it starts at once.
"""

import json
import os
import sys
import threading
from time import monotonic
from typing import Any

FAILED = 3
"""Exit code of a child whose model cannot be loaded; llama.cpp has said why on stderr."""


def serve(options: dict[str, Any]) -> None:
    """Serves the model until stdin ends."""
    import xllamacpp  # noqa: PLC0415 - the extra `local`

    threading.Thread(target=_end_with_parent, daemon=True).start()  # loading is not interrupted by anything else
    params = xllamacpp.CommonParams()
    params.model.path = options["file"]
    params.model_alias = {options["name"]}
    params.hostnames = [options["socket"]]
    params.api_keys = [options["key"]]
    params.n_ctx = options["context"]
    params.n_parallel = options["slots"]
    # All slots share the context: one long conversation may use all of it.
    params.kv_unified = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.use_jinja = True
    params.ui = params.endpoint_slots = params.endpoint_props = False
    params.timeout_read = params.timeout_write = 24 * 3600
    started = monotonic()
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        sys.stderr.write(f"E {error}\n")
        sys.stderr.flush()
        os._exit(FAILED)
    sys.stdout.write(json.dumps({"ready": round(monotonic() - started, 3)}) + "\n")
    sys.stdout.flush()
    threading.Event().wait()
    del server


def _end_with_parent() -> None:
    """Ends this process when its stdin does. The server's threads would hold up a normal exit."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serve(json.loads(sys.stdin.readline()))
