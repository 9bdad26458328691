"""The feature `studio`: rooms, prompts and generated tools as data."""

from gateway.feature import Command, Door, Feature

FEATURE = Feature(
    name="studio",
    needs=("documents", "pipeline_builder"),
    rooms=("studio",),
    subagents="gateway.features.studio.hooks:list_subagents",
    extensions="gateway.features.studio.hooks:list_extensions",
    mcp_prompts="gateway.features.studio.hooks:list_mcp_prompts",
    routes=(
        Door("gateway.features.studio.doors.rooms:router", place=260),
        Door("gateway.features.studio.doors.studio:router", place=270),
        Door("gateway.features.studio.doors.studio_requests:router", place=280),
        Door("gateway.features.studio.doors.studio_tools:router", place=290),
    ),
    commands={
        "studio": Command(
            "gateway.features.studio.commands.studio:studio",
            "Make and change rooms, tools and prompts by talking. What changes something waits for your yes.",
            place=40,
        ),
        "secrets": Command(
            "gateway.features.studio.commands.secrets:secrets",
            "List the secrets by name: whether each is configured, and which rooms name it. Values are never shown.",
            place=90,
        ),
        "rooms": Command(
            "gateway.features.studio.commands.rooms:app",
            "Rooms: list, create, edit, copy, delete and check them; list versions and restore one.",
            place=200,
        ),
        "prompts": Command(
            "gateway.features.studio.commands.prompts:app",
            "Prompt library: save, show, apply and remove prompts.",
            place=210,
        ),
    },
)
