"""The redaction policy: what leaves a run, and what a model may read. Pure policy; `agent.run_context` applies it.

- `events`: what an event may hold as it goes into the log, by its type. All doors show the log.
- `answers`: the answer, whole or streamed, as a person may read it.
- `inbound`: what goes to a model, and the placeholders for what it may not read.
- `requests`: what a caller sends: secrets out before it is stored, attacks found.
- `secrets`: the finders of secrets that all of these share.
"""
