"""The feature `poems`: favourite poems of each owner."""

from gateway.feature import Command, Door, Feature, Page, PagePart, Revision, Toolset

TABLE = (
    "CREATE TABLE poem_favourites (owner TEXT NOT NULL, title TEXT NOT NULL, added DOUBLE PRECISION NOT NULL, "
    "PRIMARY KEY (owner, title))",
)
LISTINGS = ("CREATE TABLE poem_listings (owner TEXT NOT NULL, run_id TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)",)
FEATURE = Feature(
    name="poems",
    settings="stepgate_poems.settings:PoemSettings",
    removed_settings={"AGENT_POEMS_SHOWN": "set AGENT_POEMS_LISTED"},
    build="stepgate_poems.favourites:build",
    tools="stepgate_poems.favourites:list_tools",
    events="stepgate_poems.events:EVENTS",
    extensions="stepgate_poems.run_hooks:list_extensions",
    room_folder="stepgate_poems:rooms",
    toolsets=(Toolset("poems", ("favourite_poems",), "favourite poems"),),
    routes=(Door("stepgate_poems.door:router"),),
    page=Page(folder="stepgate_poems:page", views=(PagePart("poems", "Poems", "poems.js", "agent"),)),
    commands={"poems": Command("stepgate_poems.command:list_poems", "List your favourite poems.")},
    revisions=(Revision("1", sqlite=TABLE, postgres=TABLE), Revision("2", sqlite=LISTINGS, postgres=LISTINGS)),
    owned_tables=("poem_listings", "poem_favourites"),
    run_tables=("poem_listings",),
    retention="stepgate_poems.retention:RETENTION",
)
