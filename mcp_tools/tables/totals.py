"""Finds a last row that holds the sums of those above it."""

from collections.abc import Iterator

from mcp_tools.tables.conversion import Connection, quote

_ENOUGH = 3
"""Rows from which on a sum is hardly a coincidence; of fewer the last row must be emptier too."""
_MAX_NAMED = 5


def describe_total(connection: Connection, table: str) -> Iterator[str]:
    """Yields a note if every number of the last row is the sum of the column above it."""
    schema = [(str(name), str(kind)) for name, kind, *_ in connection.execute(f"DESCRIBE {quote(table)}").fetchall()]
    numbers = [name for name, kind in schema if kind in {"BIGINT", "HUGEINT"} or kind.startswith("DECIMAL")]
    if not numbers or len(schema) == len(numbers) == 1:
        return
    parts = [f"sum({quote(name)})" for name in numbers] + [f"count({quote(name)})" for name, _ in schema]
    count, *figures = connection.execute(f"SELECT count(*), {', '.join(parts)} FROM {quote(table)}").fetchone()
    if count < 3:
        return
    row = connection.execute(f"SELECT * FROM {quote(table)} WHERE rowid >= {count - 1} ORDER BY rowid DESC").fetchone()
    values = dict(zip((name for name, _ in schema), row, strict=True))
    sums = {name: figure for name, figure in zip(numbers, figures, strict=False) if values[name] is not None}
    filled = dict(zip(values, figures[len(numbers) :], strict=True))
    # A name of the row is one text; more of them are a row like the others.
    texts = [name for name, kind in schema if values[name] is not None and name not in numbers]
    is_emptier = any(values[name] is None and filled[name] == count - 1 for name in values)
    # The first column numbers the rows, unless it is empty or names the sums.
    has_place = schema[0][0] in numbers and values[schema[0][0]] is not None
    is_sum = sums and all(values[name] and total == 2 * values[name] for name, total in sums.items())
    if is_sum and not has_place and len(texts) <= 1 and (is_emptier or count > _ENOUGH):
        listed = ", ".join([*sums][:_MAX_NAMED]) + (" and more" if len(sums) > _MAX_NAMED else "")
        name = " ".join(str(values[texts[0]]).split())[:40] if texts else ""
        condition = f"; leave it out with WHERE {quote(texts[0])} <> '{name}'" if name and "'" not in name else ""
        yield f"the last row{f' ({name})' if name else ''} holds the sums of {listed} above it{condition}"
