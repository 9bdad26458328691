"""`python -m tests.bench.sandbox`: what a call of the sandbox takes, and its first one, which starts the zygote."""

import asyncio
import sys
from statistics import quantiles
from time import perf_counter

from agent.sandbox.client import Sandbox
from agent.sandbox.limits import SandboxLimits
from agent.sandbox.probe import find_missing_feature

CALLS = 200
PROGRAMS = {
    "1 + 1": "1 + 1",
    "statistics of 1,000 numbers": "import statistics\nstatistics.stdev(inputs['x'])",
    "a file of 100 kB written": "open('a.bin', 'wb').write(bytes(100_000))",
}


async def main() -> None:
    """Measures one call after the other, in ms."""
    sandbox = Sandbox(SandboxLimits(), parallel=1)
    try:
        started = perf_counter()
        isolated = await sandbox.is_isolated()
        print(f"start: {1000 * (perf_counter() - started):.0f} ms, {'with' if isolated else 'without'} namespaces")
        for name, code in PROGRAMS.items():
            times, cpu = [], 0.0
            for _ in range(CALLS):
                started = perf_counter()
                cpu += (await sandbox.run(code, {"x": list(range(1_000))}, {})).cpu_s
                times.append(1000 * (perf_counter() - started))
            cuts = quantiles(times, n=100)
            print(
                f"{name}: p50 {cuts[49]:.1f} ms, p95 {cuts[94]:.1f} ms; CPU of the program {1000 * cpu / CALLS:.1f} ms"
            )
    finally:
        await sandbox.aclose()


if __name__ == "__main__":
    if missing := find_missing_feature():
        sys.exit(f"no sandbox: {missing}")
    asyncio.run(main())
