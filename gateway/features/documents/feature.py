"""The feature `documents`: collections of documents, search in them, and answers with citations."""

from gateway.feature import Command, Door, Feature, Page, PagePart, Toolset

FEATURE = Feature(
    name="documents",
    rooms=("knowledge",),
    build="gateway.features.documents.bootstrap_documents:build_documents",
    tools="gateway.features.documents.hooks:list_tools",
    subagents="gateway.features.documents.hooks:list_subagents",
    extensions="gateway.features.documents.hooks:list_extensions",
    owned_stores="gateway.features.documents.hooks:list_owned_stores",
    background="gateway.features.documents.hooks:run_jobs",
    readiness="gateway.features.documents.hooks:list_readiness_checks",
    doctor_checks="gateway.features.documents.commands.doctor:check_documents",
    derived_folders="gateway.features.documents.engine.search.tantivy_index:DERIVED_FOLDERS",
    toolsets=(
        Toolset(
            "search",
            ("search_knowledge",),
            "passages of the user's collections of documents",
            "search_knowledge finds passages in the user's collections of documents",
            is_default=True,
            place=20,
        ),
        Toolset(
            "documents",
            ("answer_with_citations", "ingest", "list_documents", "spawn_researcher"),
            "reading documents in, checked answers with citations, research",
            place=80,
        ),
        Toolset("admin", ("source_credential_allow",)),
    ),
    routes=(
        Door("gateway.features.documents.doors.embeddings:router", place=50),
        Door("gateway.features.documents.doors.collections:router", place=120),
        Door("gateway.features.documents.doors.documents:router", place=130),
        Door("gateway.features.documents.doors.citations:router", place=140),
        Door("gateway.features.documents.doors.ingestion:router", place=150),
        Door("gateway.features.documents.doors.parsing:router", place=155),
        Door("gateway.features.documents.doors.sources:router", place=200),
    ),
    page=Page(
        folder="gateway.features.documents:page",
        views=(PagePart("documents", "Documents", "documents.js", "agent", place=20),),
        room_offers=(PagePart("documents", "Add documents", "no_documents.js", place=10, rooms=("knowledge",)),),
        attachments="chat_files.js",
        citations="citation.js",
    ),
    upload_limits="gateway.features.documents.doors.documents:get_upload_limits",
    commands={
        "ingest": Command(
            "gateway.features.documents.commands.ingest:ingest",
            "Read documents into a collection; unchanged ones are skipped.",
            place=150,
        ),
        "collections": Command(
            "gateway.features.documents.commands.ingest:app",
            "Collections: the documents that answers are based on.",
            place=290,
        ),
        "sources": Command(
            "gateway.features.documents.commands.sources:app",
            "Sources: named sources of documents.",
            place=300,
        ),
    },
    owned_tables=(
        "sources",
        "jobs",
        "ingestions",
        "pending_passages",
        "collection_vectors",
        "documents",
        "collections",
        "chunk_sets",
    ),
    work_tables=("jobs",),
)
