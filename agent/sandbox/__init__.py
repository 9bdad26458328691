"""Runs short Python programs in a locked process: no network, no files, no other process, bounded time and memory.

`client.Sandbox` is what callers use, or `interpreter.InterpreterPool`, the interpreter in Rust (for `run_python`:
`interpreted_programs.InterpretedPrograms`); `probe.find_missing_feature` says why a machine has no sandbox. `zygote`,
`supervise`, `program`, `kernel` and `syscalls` run in the sandbox's own processes and import the standard library only.
"""
