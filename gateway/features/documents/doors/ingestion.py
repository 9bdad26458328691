"""Ingestion over HTTP: `/v1/collections/{name}/ingest` and `/reindex`, `/v1/jobs`, `/v1/pipelines`, `/v1/plugins`."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from agent.core.failures import AgentFailure, get_stage
from agent.core.models import DeferredModel, JsonObject
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.doors.agent import ERRORS
from gateway.doors.asked_calls import WaitingCall
from gateway.doors.dependencies import Gateway
from gateway.doors.http_runs import cancel_on_disconnect
from gateway.doors.json_body import JsonRoute
from gateway.features.documents.doors.source_credentials import ask_about_credential
from gateway.features.documents.engine.ingest import plugins
from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.dry_run_report import ValidationReport
from gateway.features.documents.engine.ingest.jobs import Job, JobProgress, JobRequest, JobStatus
from gateway.features.documents.engine.ingest.pipeline import NodeKind, PipelineDAG
from gateway.features.documents.engine.ingest.plugins import PluginInfo
from gateway.features.documents.engine.ingest.templates import (
    PipelineTemplate,
    build_requested_pipeline,
    from_template,
    list_templates,
)
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType
from gateway.features.documents.parts import get_documents

router = APIRouter(tags=["knowledge"], route_class=JsonRoute, dependencies=[require_scope("ingest")])

_INTERRUPTED_NOTE = "its process has ended; a running gateway resumes it automatically and keeps completed work"


class SourceBody(BaseModel):
    """A source and the pipeline to read it with: a template with parameters, or a whole pipeline."""

    model_config = ConfigDict(extra="forbid")

    source_type: SourceType
    source_identifier: str = Field(
        min_length=1, max_length=4000, description="URL, path below AGENT_FILE_ROOTS, or Google Drive id"
    )
    credentials_id: str | None = Field(default=None, max_length=200, description="name of a stored credential")
    password_id: str | None = Field(
        default=None, max_length=200, description="name of a stored credential that opens protected PDFs"
    )
    recursive: bool = False
    max_depth: int | None = Field(default=None, ge=0, le=100, description="links away from the start of a web site")
    max_pages: int | None = Field(default=None, ge=1, le=1_000_000, description="pages of a web site that are read")
    template: str | None = Field(default=None, max_length=100)
    parameters: JsonObject | None = None
    pipeline: JsonObject | None = None

    @property
    def source(self) -> ConnectorInput:
        """The source as connectors take it."""
        return ConnectorInput.model_validate(self.model_dump(include=set(ConnectorInput.model_fields)))

    def build_pipeline(self) -> PipelineDAG | None:
        """The requested pipeline. Raises `PipelineInvalidError` with every reason, and `NotFoundError`."""
        return build_requested_pipeline(self.template, self.parameters, self.pipeline)


class DryRunBody(SourceBody):
    """A pipeline to try, and on how many files. The same seed chooses the same files."""

    sample_count: int = Field(default=50, ge=1, le=1000)
    seed: int = Field(default=0, ge=0, le=2**53)


class JobEntry(DeferredModel):
    """A job on a collection. `source` is None if only vectors are rebuilt; `next` says what happens to an interrupted
    job.
    """

    id: str
    collection: str
    status: JobStatus
    source: ConnectorInput | None
    template: str | None
    progress: JobProgress
    attempts: int
    report: JsonObject | None
    failure: AgentFailure | None
    next: str
    created_at: datetime
    updated_at: datetime


class JobEntries(DeferredModel):
    """Jobs, newest first."""

    data: list[JobEntry]


class TemplateEntries(DeferredModel):
    """Every template, the default one first."""

    data: list[PipelineTemplate]


class PluginEntries(DeferredModel):
    """The components of pipelines."""

    data: list[PluginInfo]


@router.post(
    "/v1/collections/{name}/ingest",
    status_code=202,
    response_model=JobEntry | WaitingCall,
    responses=ERRORS,
    dependencies=[require_tool("ingest")],
)
async def ingest_source(
    name: str, body: SourceBody, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> JobEntry | Response:
    """Read a source into a collection, created if needed: a job to follow at `/v1/jobs/{id}`.

    403 for a path outside the folders that the operator allows; 400 with every reason for an invalid pipeline. For a
    credential that was never sent to this address also 403, and with the scope `admin` a question to a person instead
    of a job (`status: awaiting_approval`): send the request again once it is allowed.
    """
    source = resolve_allowed(body.source, stepgate.settings.readable_roots)
    pipeline = body.build_pipeline()
    if (waiting := await ask_about_credential(http, stepgate, caller, source)) is not None:
        return waiting
    await get_documents(stepgate).library.check_ingest(caller.owner, name, source, pipeline)
    return _to_job_entry(
        await get_documents(stepgate).jobs.submit(caller.owner, name, JobRequest(source=source, pipeline=pipeline))
    )


@router.post("/v1/collections/{name}/reindex", status_code=202, responses=ERRORS, dependencies=[require_tool("ingest")])
async def reindex_collection(name: str, stepgate: Gateway, caller: CurrentCaller) -> JobEntry:
    """Rebuild the stems and vectors of a collection from its stored passages: a job to follow at `/v1/jobs/{id}`.

    Until it has ended, searches use words only and say so. 404 for an unknown collection.
    """
    await get_documents(stepgate).library.get_collection(caller.owner, name)
    return _to_job_entry(await get_documents(stepgate).jobs.submit(caller.owner, name, JobRequest()))


@router.get("/v1/jobs", responses=ERRORS)
async def list_jobs(
    stepgate: Gateway, caller: CurrentCaller, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> JobEntries:
    """List the caller's newest jobs."""
    return JobEntries(
        data=[_to_job_entry(job) for job in await get_documents(stepgate).jobs.store.list(caller.owner, limit)]
    )


@router.get("/v1/jobs/{job_id}", responses=ERRORS)
async def get_job(
    job_id: str, stepgate: Gateway, caller: CurrentCaller, wait_s: Annotated[float, Query(ge=0, le=60)] = 0
) -> JobEntry:
    """Return a job; with `wait_s`, once it has ended or that many seconds have passed."""
    return _to_job_entry(await get_documents(stepgate).jobs.wait(caller.owner, job_id, wait_s))


@router.post(
    "/v1/pipelines/dry-run",
    response_model=ValidationReport,
    responses={
        **ERRORS,
        202: {"model": WaitingCall, "description": "A person must approve where its credential is sent"},
    },
    dependencies=[require_tool("ingest")],
)
async def dry_run_pipeline(
    body: DryRunBody, http: Request, stepgate: Gateway, caller: CurrentCaller
) -> ValidationReport | Response:
    """Try a pipeline on a sample of a source. Writes nothing; recommends changes that would help. Ends if the client
    disconnects.
    """
    roots = stepgate.settings.readable_roots
    if (waiting := await ask_about_credential(http, stepgate, caller, body.source)) is not None:
        return waiting
    trial = get_documents(stepgate).library.dry_run(
        resolve_allowed(body.source, roots),
        body.build_pipeline() or from_template(),
        sample_count=body.sample_count,
        seed=body.seed,
        roots=roots,
    )
    return await cancel_on_disconnect(http, trial)


@router.get("/v1/pipelines/templates", responses=ERRORS, dependencies=[require_tool("list_templates")])
async def get_templates() -> TemplateEntries:
    """List the pipeline templates."""
    return TemplateEntries(data=list_templates())


@router.get("/v1/plugins", responses=ERRORS, dependencies=[require_tool("list_plugins")])
async def list_plugins(kind: NodeKind | None = None) -> PluginEntries:
    """List the components of pipelines, with their options."""
    return PluginEntries(data=plugins.list_plugins(kind))


@router.get("/v1/plugins/{name}", responses=ERRORS, dependencies=[require_tool("get_plugin_details")])
async def get_plugin(name: str) -> PluginInfo:
    """Return one component."""
    return plugins.get_plugin(name)


def _name_stage(failure: AgentFailure | None) -> AgentFailure | None:
    """The failure with the stage that an error response would have, as a job is not a request."""
    if failure is None:
        return None
    stage = get_stage(failure)
    return failure.model_copy(update={"stage": "ingest" if stage == "request" else stage})


def _to_job_entry(job: Job) -> JobEntry:
    pipeline = job.request.pipeline
    return JobEntry(
        id=job.id,
        collection=job.collection,
        status=job.status,
        source=job.request.source,
        template=pipeline.template if pipeline is not None else None,
        progress=job.progress,
        attempts=job.attempts,
        report=job.outcome.report,
        failure=_name_stage(job.outcome.failure),
        next=_INTERRUPTED_NOTE if job.status == "interrupted" else "",
        created_at=datetime.fromtimestamp(job.created, UTC),
        updated_at=datetime.fromtimestamp(job.updated, UTC),
    )
