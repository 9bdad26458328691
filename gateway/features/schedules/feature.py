"""The feature `schedules`: runs at times of cron, and webhooks."""

from gateway.feature import Command, Door, Feature, Page, PagePart, Toolset

FEATURE = Feature(
    name="schedules",
    needs=("protocols",),
    build="gateway.features.schedules.bootstrap_schedules:build_webhooks",
    webhooks="gateway.features.schedules.hooks:find_webhooks",
    build_services="gateway.features.schedules.bootstrap_schedules:build_schedules",
    around_runs="gateway.features.schedules.hooks:send_webhooks",
    background="gateway.features.schedules.hooks:start_ticks",
    tools="gateway.features.schedules.hooks:list_tools",
    toolsets=(
        Toolset(
            "schedules",
            ("schedule_create", "schedule_remove", "schedules_list"),
            "requests at regular times",
            place=120,
        ),
    ),
    routes=(
        Door("gateway.features.schedules.doors.schedules:router", place=300),
        Door("gateway.features.schedules.doors.webhooks:router", place=310),
    ),
    page=Page(
        folder="gateway.features.schedules:page",
        studio=(PagePart("schedules", "Schedules", "schedules.js", place=50),),
    ),
    commands={
        "schedules": Command(
            "gateway.features.schedules.commands.schedules:app",
            "Schedules: list, show, create, enable, disable, run, remove.",
            place=190,
        ),
    },
    owned_tables=("schedule_ticks", "schedules", "webhook_deliveries"),
    work_tables=("schedules",),
    run_tables=("webhook_deliveries",),
    retention="gateway.features.schedules.engine.retention:RETENTION",
)
