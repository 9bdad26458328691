"""Statements of the PostgreSQL journal that write events: each a whole append, in one round trip to the server.

A statement is a transaction of its own, so no lock on a run's row outlives it: a process that is stopped in the middle
of an append holds nothing.
"""

import functools
import json
from collections.abc import Sequence

from agent.core.events import Event, EventDraft, RunCreated
from agent.storage.event_codec import EventRow, encode, get_data
from agent.storage.journal_rows import (
    EVENT_COLUMNS,
    compute_ages,
    derive_status,
    find_labelled_answer,
    list_blob_references,
    make_search_words,
)
from agent.storage.postgres import NOW_SQL, Connection

_NOW = f"COALESCE(%(now)s, {NOW_SQL})"
_NEW_COLUMNS = ("number", "type", "v", "step_id", "attempt", "data", "age")
_RELEASE = ", terminal = true, worker = NULL, lease_until = 0"
_STORE_REFERENCES = """
    , referred AS (
        INSERT INTO blob_references (run_id, checksum)
        SELECT %(run_id)s, checksum FROM blobs WHERE checksum = ANY(%(blobs)s) AND EXISTS (SELECT 1 FROM run)
        ON CONFLICT DO NOTHING
    )"""
_STORE_DIGESTS = """
    , known AS (
        INSERT INTO answer_digests (run_id, digest, owner, trusted, private)
        SELECT %(run_id)s, digest, run.owner, %(trusted)s, %(private)s FROM run, unnest(%(digests)s::text[]) AS digest
        ON CONFLICT DO NOTHING
    )"""
_DELETE_DELTAS = """
    , deleted AS (
        DELETE FROM events WHERE run_id = %(run_id)s AND type = 'answer.delta' AND EXISTS (SELECT 1 FROM run)
    )"""
_CREATE = f"""
    WITH run AS (
        INSERT INTO runs (run_id, owner, room, status, hidden, tainted, title, conversation_id, epoch, last_seq,
            terminal, worker, lease_until, queue, parent, created_at, updated_at)
        SELECT %(run_id)s, %(owner)s, %(room)s, 'queued', %(hidden)s, %(tainted)s, %(title)s, %(conversation)s,
            %(epoch)s, 1, false, %(worker)s, CASE WHEN %(epoch)s = 0 THEN 0 ELSE clock.now + %(lease)s END, %(queue)s,
            %(parent)s, clock.now, clock.now
        FROM (SELECT {_NOW} AS now) AS clock
        RETURNING created_at
    ), searched AS (
        INSERT INTO request_words (run_id, words) SELECT %(run_id)s, %(words)s FROM run WHERE %(words)s::text <> ''
    )
    INSERT INTO events ({EVENT_COLUMNS})
    SELECT %(run_id)s, 1, 1, %(type)s, %(v)s, NULL, NULL, %(data)s, created_at FROM run RETURNING at
"""  # noqa: S608 - constants only


async def create_run(
    db: Connection,
    body: RunCreated,
    row: EventRow,
    *,
    title: str,
    conversation: str | None,
    worker: str | None,
    lease_s: float,
    queue: str,
    now: float | None,
) -> float:
    """Stores a run with its first event, which `row` holds; returns the time. `now` is the server's if None."""
    values = {
        "run_id": row[0],
        "owner": body.owner,
        "room": body.room.id,
        "hidden": body.hidden,
        "tainted": body.tainted,
        "title": title,
        "words": "" if body.hidden else make_search_words(body.request.prompt),
        "conversation": conversation,
        "epoch": 1 if worker else 0,
        "worker": worker,
        "lease": lease_s,
        "queue": queue,
        "parent": body.request.parent,
        "now": now,
        "type": row[3],
        "v": row[4],
        "data": get_data(row),
    }
    run_row = await (await db.execute(_CREATE, values)).fetchone()
    return float(run_row[0]) if run_row else 0.0


@functools.cache
def _build_append(*, ended: bool, has_blobs: bool, has_digests: bool) -> bytes:
    """The statement that appends events, with what the end of a run, references to blobs and digests need.

    The deltas of an ended run are deleted; a statement does not see the rows that it inserts, so those are left out."""
    extras = (_STORE_REFERENCES, has_blobs), (_STORE_DIGESTS, has_digests), (_DELETE_DELTAS, ended)
    return f"""
        WITH run AS (
            UPDATE runs SET last_seq = last_seq + %(count)s, updated_at = {_NOW},
                status = COALESCE(%(status)s, status){_RELEASE if ended else ""}
            WHERE run_id = %(run_id)s AND epoch = %(epoch)s AND NOT terminal
            RETURNING last_seq - %(count)s AS last_seq, updated_at, owner
        ), stored AS (
            INSERT INTO events ({EVENT_COLUMNS})
            SELECT %(run_id)s, run.last_seq + new.number, %(epoch)s, new.type, new.v, new.step_id, new.attempt,
                new.data, run.updated_at - new.age
            FROM run, json_to_recordset(%(events)s::json)
                AS new (number int, type text, v int, step_id text, attempt int, data text, age float8)
            {"WHERE new.type <> 'answer.delta'" if ended else ""}
        ){"".join(part for part, wanted in extras if wanted)}
        SELECT last_seq, updated_at FROM run
    """.encode()  # noqa: S608 - constants only


async def append(
    db: Connection, run_id: str, epoch: int, drafts: Sequence[EventDraft], now: float | None
) -> tuple[Event, ...] | None:
    """Appends events to a run's log and updates the run's row. `now` is the server's time if None.

    Returns them as the log has them, or None if the run is not at this epoch or has ended. Raises `TooLargeError`."""
    ages = compute_ages(drafts)
    encoded = [encode(Event(run_id, 0, epoch, 0.0, one.body, one.step_id, one.attempt), one.data) for one in drafts]
    placeless = [event for event, _ in encoded]
    status, ended = derive_status(placeless)
    blobs = [checksum for _, checksum in list_blob_references(placeless)]
    # As one text, because psycopg converts lists item by item in Python.
    new = [
        dict(zip(_NEW_COLUMNS, (number, *row[3:8], age), strict=True))
        for number, ((_, row), age) in enumerate(zip(encoded, ages, strict=True), start=1)
    ]
    answer = find_labelled_answer(placeless) if ended else None
    label = answer.label if answer is not None else None
    values = {
        "run_id": run_id,
        "epoch": epoch,
        "now": now,
        "count": len(drafts),
        "status": status,
        "events": json.dumps(new, ensure_ascii=False),
        "blobs": blobs,
        "digests": list(answer.digests) if answer is not None else [],
        "trusted": label is not None and label.trusted,
        "private": label is not None and label.private,
    }
    statement = _build_append(ended=ended, has_blobs=bool(blobs), has_digests=label is not None)
    cursor = await db.execute(statement, values)
    row = await cursor.fetchone()
    if row is None:
        return None
    return tuple(
        event._replace(seq=int(row[0]) + number, at=float(row[1]) - age)
        for number, (event, age) in enumerate(zip(placeless, ages, strict=True), start=1)
    )
