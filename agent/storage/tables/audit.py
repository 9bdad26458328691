"""The audit record, which triggers keep append-only."""

from sqlalchemy import DDL, Column, Float, Index, Table, Text, event

from agent.storage.tables.schema import COUNTER, metadata

audit = Table(
    "audit",
    metadata,
    Column("id", COUNTER, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("owner", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("detail", Text, nullable=False),
)
Index("audit_by_time", audit.c.at)
# Nobody changes records, neither our statements nor an operator by mistake.
_REFUSED = "the audit record is append-only"
for _name, _change in (
    ("update", "UPDATE ON audit"),
    ("delete", "DELETE ON audit"),
    # REPLACE deletes rows without firing the DELETE trigger.
    ("replace", "INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)"),
):
    _trigger = DDL(  # type: ignore[no-untyped-call]
        f"CREATE TRIGGER audit_no_{_name} BEFORE {_change} BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
    )
    event.listen(audit, "after_create", _trigger.execute_if(dialect="sqlite"))
for _statement in (
    f"CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSED}'; END $$",
    "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()",
):
    _ddl = DDL(_statement)  # type: ignore[no-untyped-call]
    event.listen(audit, "after_create", _ddl.execute_if(dialect="postgresql"))
