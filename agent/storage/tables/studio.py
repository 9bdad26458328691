"""Things that people make and accept: rooms, prompts, recipes, generated tools, tools of foreign MCP servers."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
)

from agent.storage.tables.schema import metadata

# A row for each version of a room's YAML; one without data says that the room was deleted. Used with PostgreSQL only.
room_versions = Table(
    "room_versions",
    metadata,
    Column("room_id", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("data", LargeBinary),
    Column("managed", Boolean, nullable=False, server_default=false()),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("room_id", "revision"),
)

# A row for each version of a prompt.
prompts = Table(
    "prompts",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("by_whom", Text, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name", "version"),
)

recipes = Table(
    "recipes",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("staged", Text),
    Column("applied", Text),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name"),
)

# Generated tools. A version never changes but for its state, until it is removed with its tool.
tool_versions = Table(
    "tool_versions",
    metadata,
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("tests", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("review", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("warnings", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("parent", Integer),
    Column("run_id", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("approved_by", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    PrimaryKeyConstraint("owner", "name", "version"),
)

# The version of a tool that is in use. Names are unique in the gateway, as those of all tools.
active_tools = Table(
    "active_tools",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("since", Float, nullable=False),
)

# Without an owner: foreign MCP servers belong to the gateway.
mcp_pins = Table(
    "mcp_pins",
    metadata,
    Column("server", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("pins", Text, nullable=False),
    Column("at", Float, nullable=False),
)
