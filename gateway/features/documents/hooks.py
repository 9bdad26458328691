"""Hooks of the feature `documents`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from agent.run_context.extensions import Extension
from agent.run_context.ground_sources import GroundCollections
from agent.subagents import RegisteredSubAgent, register_subagents
from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.documents.engine.document_runs import DOCUMENT_EXTENSION
from gateway.features.documents.engine.owned_documents import OwnedDocuments
from gateway.features.documents.engine.subagents import Researcher
from gateway.features.documents.parts import get_documents
from gateway.features.documents.tools import SourceCredentialTool, make_document_tools, measure_relevance


def list_tools(host: FeatureHost) -> tuple[Tool, ...]:
    """The tools that search documents and answer from them."""
    documents = get_documents(host)
    return (*make_document_tools(host.settings, documents.library), SourceCredentialTool(documents.sources))


def list_subagents(_: FeatureHost) -> tuple[RegisteredSubAgent, ...]:
    """The researcher."""
    return register_subagents((Researcher,))


def list_extensions(host: FeatureHost) -> tuple[Extension, ...]:
    """The plans of rooms with `knowledge`, the answers with citations, and the collections for planners."""
    library = get_documents(host).library
    collections = GroundCollections(library.document_counts.read_counts, partial(measure_relevance, library))
    return (replace(DOCUMENT_EXTENSION, collections=collections),)


def list_owned_stores(host: FeatureHost) -> tuple[OwnedDocuments, ...]:
    """The collections and uploads of owners."""
    return (OwnedDocuments(get_documents(host).library),)


def list_readiness_checks(host: FeatureHost) -> Mapping[str, Callable[[], Awaitable[str]]]:
    """The check of the store of uploads, where it is not the data folder."""
    if host.settings.objects_url is None:
        return {}
    objects = get_documents(host).library.uploads.objects
    return {"objects": lambda: asyncio.to_thread(objects.check)}


@asynccontextmanager
async def run_jobs(host: FeatureHost) -> AsyncIterator[None]:
    """Ingests documents while entered, if this process takes such jobs. They end when the gateway is closed."""
    if host.settings.takes_ingestion:
        get_documents(host).jobs.start()
    yield
