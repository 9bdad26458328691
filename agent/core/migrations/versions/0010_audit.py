"""Who did what, and as what the tools of foreign MCP servers were accepted."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_REFUSED = "the audit record is append-only"


def upgrade() -> None:
    """Make the tables; what is recorded cannot be changed."""
    counter = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "audit",
        sa.Column("id", counter, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("audit_by_time", "audit", ["at"])
    op.create_table(
        "mcp_pins",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("pins", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        for name, change in (
            ("update", "UPDATE ON audit"),
            ("delete", "DELETE ON audit"),
            ("replace", "INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)"),
        ):
            op.execute(f"CREATE TRIGGER audit_no_{name} BEFORE {change} BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END")
        return
    op.execute(
        "CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSED}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()"
    )


def downgrade() -> None:
    """Drop them: what was recorded is lost, and foreign tools are pinned anew."""
    op.drop_table("mcp_pins")
    op.drop_table("audit")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION audit_append_only()")
