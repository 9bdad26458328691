"""The feature `pipeline_builder`: conversations that build document pipelines."""

from gateway.feature import Door, Feature, Page, PagePart, Toolset

FEATURE = Feature(
    name="pipeline_builder",
    needs=("documents",),
    rooms=("pipelines",),
    build="gateway.features.pipeline_builder.bootstrap_pipeline_builder:build_pipeline_builder",
    tools="gateway.features.pipeline_builder.hooks:list_tools",
    extensions="gateway.features.pipeline_builder.hooks:list_extensions",
    subagents="gateway.features.pipeline_builder.hooks:list_subagents",
    subagent_results="gateway.features.pipeline_builder.hooks:make_result_keeper",
    build_services="gateway.features.pipeline_builder.bootstrap_pipeline_builder:build_conversations",
    room_conversations="gateway.features.pipeline_builder.hooks:find_conversations",
    owned_stores="gateway.features.pipeline_builder.hooks:list_owned_stores",
    background="gateway.features.pipeline_builder.hooks:resume_conversations",
    readiness="gateway.features.pipeline_builder.hooks:list_readiness_checks",
    doctor_checks="gateway.features.pipeline_builder.commands.doctor:check_messages",
    after_answer="gateway.features.pipeline_builder.commands.ingestion_progress:follow_ingestion",
    request_handlers="gateway.features.pipeline_builder.hooks:list_request_handlers",
    toolsets=(
        Toolset(
            "pipelines",
            (
                "apply_pipeline",
                "build_pipeline",
                "get_pipeline_state",
                "get_plugin_details",
                "list_plugins",
                "list_templates",
                "spawn_pipeline_validator",
                "spawn_source_analyzer",
                "suggest_pipeline",
            ),
            "building pipelines that read documents",
            place=110,
        ),
    ),
    routes=(Door("gateway.features.pipeline_builder.doors.conversations:router", place=180),),
    page=Page(
        folder="gateway.features.pipeline_builder:page",
        views=(PagePart("build", "Build", "build.js", "ingest", place=30, rooms=("pipelines",)),),
    ),
    owned_tables=("conversation_uncertainties", "agent_conversations"),
    retention="gateway.features.pipeline_builder.engine.retention:RETENTION",
)
