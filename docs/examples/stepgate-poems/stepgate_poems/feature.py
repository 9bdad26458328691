"""The feature `poems`: favourite poems of each owner, with a table, a door, a tool and a command."""

from gateway.feature import Command, Door, Feature, Revision

TABLE = (
    "CREATE TABLE poem_favourites (owner TEXT NOT NULL, title TEXT NOT NULL, added DOUBLE PRECISION NOT NULL, "
    "PRIMARY KEY (owner, title))",
)
FEATURE = Feature(
    name="poems",
    build="stepgate_poems.favourites:build",
    tools="stepgate_poems.favourites:list_tools",
    routes=(Door("stepgate_poems.door:router"),),
    commands={"poems": Command("stepgate_poems.command:list_poems", "List your favourite poems.")},
    revisions=(Revision("1", sqlite=TABLE, postgres=TABLE),),
    owned_tables=("poem_favourites",),
)
