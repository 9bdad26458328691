"""The feature `studio`: rooms, prompts and generated tools as data."""

from gateway.feature import Command, Door, Feature, Page, PagePart, Revision, Toolset

_PROMPT_FIELDS = "ALTER TABLE prompts ADD COLUMN fields TEXT NOT NULL DEFAULT '{}'"
"""Holds the fields of a prompt that have no column of their own, as JSON."""
_ROOMS_OF_RUNS = (
    "CREATE TABLE rooms_of_runs AS SELECT DISTINCT target AS room_id FROM audit "
    "WHERE action IN ('room.create', 'room.edit') AND outcome <> 'failed' AND {} > 0"
)
"""Lists the rooms that runs had changed before rooms had `from_outside` (`engine/earlier_rooms.py`)."""

FEATURE = Feature(
    name="studio",
    needs=("documents", "pipeline_builder"),
    rooms=("studio",),
    settings="gateway.features.studio.settings:StudioSettings",
    room_texts="gateway.features.studio.room_stores:read_room_texts",
    build="gateway.features.studio.bootstrap_studio:build_studio",
    tools="gateway.features.studio.bootstrap_studio:list_tools",
    prepare="gateway.features.studio.hooks:prepare",
    owned_stores="gateway.features.studio.hooks:list_owned_stores",
    around_runs="gateway.features.studio.hooks:follow_changes",
    doctor_checks="gateway.features.studio.commands.doctor:check_rooms",
    subagents="gateway.features.studio.hooks:list_subagents",
    extensions="gateway.features.studio.hooks:list_extensions",
    mcp_prompts="gateway.features.studio.mcp_prompts:list_mcp_prompts",
    toolsets=(
        Toolset(
            "studio",
            (
                "explain_relationship",
                "get_entity_details",
                "prompt_apply",
                "prompt_remove",
                "prompt_save",
                "prompt_show",
                "prompts_list",
                "room_copy",
                "room_create",
                "room_delete",
                "room_edit",
                "room_show",
                "rooms_list",
                "search_entities",
                "spawn_config_agent",
                "spawn_query_agent",
                "spawn_room_agent",
                "spawn_tool_agent",
                "tool_apply",
                "tool_discard",
                "tool_generate",
                "tool_refine",
                "tool_remove",
                "tool_restore",
                "tool_show",
                "tools_list",
            ),
            "rooms, prompts, generated tools, and how they are related",
            place=140,
        ),
        Toolset(
            "admin",
            (
                "list_secrets",
                "mcp_server_add",
                "mcp_server_remove",
                "mcp_server_test",
                "mcp_servers_list",
                "room_programs_allow",
            ),
            "MCP servers of rooms, names of secrets, rights of rooms and sources",
            place=150,
        ),
    ),
    routes=(
        Door("gateway.features.studio.doors.rooms:router", place=260),
        Door("gateway.features.studio.doors.studio:router", place=270),
        Door("gateway.features.studio.doors.studio_requests:router", place=280),
        Door("gateway.features.studio.doors.studio_tools:router", place=290),
    ),
    page=Page(
        folder="gateway.features.studio:page",
        studio=(
            PagePart("rooms", "Rooms", "rooms.js", "rooms", place=10),
            PagePart("tools", "Tools", "tools.js", place=20),
            PagePart("prompts", "Prompts", "prompts.js", place=30),
            PagePart("map", "Map", "map.js", place=70),
        ),
    ),
    commands={
        "tools generate": Command(
            "gateway.features.studio.commands.generated_tools:generate",
            "Make a tool with the model: tests, code, checks, review. It is staged, not in use.",
            place=-9,
        ),
        "tools refine": Command(
            "gateway.features.studio.commands.generated_tools:refine",
            "Make a changed version of a tool. It is staged; the version in use stays.",
            place=-8,
        ),
        "tools show": Command(
            "gateway.features.studio.commands.generated_tools:show",
            "Print a generated tool: its code, tests, permissions and review.",
            place=-7,
        ),
        "tools apply": Command(
            "gateway.features.studio.commands.generated_tools:apply",
            "Put a staged version into use, after showing its code, or its changes.",
            place=-6,
        ),
        "tools restore": Command(
            "gateway.features.studio.commands.generated_tools:restore",
            "Put an earlier version into use again.",
            place=-5,
        ),
        "tools discard": Command(
            "gateway.features.studio.commands.generated_tools:discard",
            "Discard a staged version.",
            place=-4,
        ),
        "tools remove": Command(
            "gateway.features.studio.commands.generated_tools:remove",
            "Delete a generated tool with all of its versions.",
            place=-3,
        ),
        "tools versions": Command(
            "gateway.features.studio.commands.generated_tools:list_versions",
            "List the versions of a generated tool, the newest first.",
            place=-2,
        ),
        "tools list --generated": Command(
            "gateway.features.studio.commands.generated_tools:list_generated",
            "Prints the generated tools, each with its newest version.",
            place=-1,
        ),
        "studio": Command(
            "gateway.features.studio.commands.studio:studio",
            "Make and change rooms, tools and prompts in a conversation. Changes wait for your approval.",
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
    revisions=(
        Revision("prompt_fields", (_PROMPT_FIELDS,), (_PROMPT_FIELDS,)),
        Revision(
            "rooms_of_runs",
            (_ROOMS_OF_RUNS.format("instr(principal, 'run run_')"),),
            (_ROOMS_OF_RUNS.format("position('run run_' IN principal)"),),
        ),
    ),
    owned_tables=("active_tools", "tool_versions", "prompts"),
)
