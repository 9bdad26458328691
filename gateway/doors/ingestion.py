"""Reading sources over HTTP: `/v1/collections/{name}/ingest` and `/reindex`, `/v1/jobs`, `/v1/pipelines`,
`/v1/plugins`."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from agent.core.errors import AgentFailure
from agent.core.models import JsonObject
from agent.knowledge.dry_run_report import ValidationReport
from agent.knowledge.jobs import Job, JobProgress, JobRequest, JobStatus
from agent.knowledge.models import ConnectorInput, SourceType
from agent.knowledge.pipeline import NodeKind, PipelineDAG
from agent.knowledge.plugins import PluginInfo, plugin, plugins
from agent.knowledge.roots import beneath
from agent.knowledge.templates import PipelineTemplate, chosen_pipeline, from_template, list_templates
from gateway.auth import By, requires
from gateway.doors.agent import ERRORS
from gateway.doors.attendance import while_heard
from gateway.doors.body import JsonRoute
from gateway.doors.wiring import Gateway

router = APIRouter(tags=["knowledge"], route_class=JsonRoute, dependencies=[requires("ingest")])

_INTERRUPTED = "its process has ended; a gateway that runs takes it up again by itself, and what is done stays done"


class SourceBody(BaseModel):
    """A source, and the pipeline to read it by: a template with its parameters, or a whole one."""

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
    template: str | None = Field(default=None, max_length=100)
    parameters: JsonObject | None = None
    pipeline: JsonObject | None = None

    @property
    def source(self) -> ConnectorInput:
        """The source as connectors take it."""
        return ConnectorInput(
            source_type=self.source_type,
            source_identifier=self.source_identifier,
            credentials_id=self.credentials_id,
            password_id=self.password_id,
            recursive=self.recursive,
        )

    def chosen(self) -> PipelineDAG | None:
        """The pipeline that is asked for. Raises `PipelineInvalidError` with every reason, `NotFoundError`."""
        return chosen_pipeline(self.template, self.parameters, self.pipeline)


class DryRunBody(SourceBody):
    """What to try, and on how many files. The same seed chooses the same files."""

    sample_count: int = Field(default=50, ge=1, le=1000)
    seed: int = Field(default=0, ge=0, le=2**53)


class JobEntry(BaseModel):
    """Work on a collection that was asked for; `source` is None where vectors are made anew. `next` says what happens
    to one that was interrupted."""

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


class JobEntries(BaseModel):
    """Jobs, newest first."""

    data: list[JobEntry]


class TemplateEntries(BaseModel):
    """Every template, the default one first."""

    data: list[PipelineTemplate]


class PluginEntries(BaseModel):
    """What pipelines are made of."""

    data: list[PluginInfo]


@router.post("/v1/collections/{name}/ingest", status_code=202, responses=ERRORS)
async def ingest(name: str, body: SourceBody, stepgate: Gateway, caller: By) -> JobEntry:
    """Read a source into a collection, made if need be: a job to follow at `/v1/jobs/{id}`.

    403 for a path outside the folders that the operator allows, 400 with every reason for a pipeline that cannot be
    carried out."""
    source = beneath(body.source, stepgate.settings.readable_roots)
    pipeline = body.chosen()
    await stepgate.library.check(caller.owner, name, source, pipeline)
    return _entry(await stepgate.jobs.submit(caller.owner, name, JobRequest(source=source, pipeline=pipeline)))


@router.post("/v1/collections/{name}/reindex", status_code=202, responses=ERRORS)
async def reindex(name: str, stepgate: Gateway, caller: By) -> JobEntry:
    """Make the stems and vectors of a collection as they are made now, from the stored passages: a job to follow at
    `/v1/jobs/{id}`. Until it is done, searches go by the words alone, and say so. 404 for an unknown collection."""
    await stepgate.library.collection(caller.owner, name)
    return _entry(await stepgate.jobs.submit(caller.owner, name, JobRequest()))


@router.get("/v1/jobs", responses=ERRORS)
async def list_jobs(stepgate: Gateway, caller: By, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> JobEntries:
    """The caller's newest jobs."""
    return JobEntries(data=[_entry(job) for job in await stepgate.jobs.store.list(caller.owner, limit)])


@router.get("/v1/jobs/{job_id}", responses=ERRORS)
async def get_job(
    job_id: str, stepgate: Gateway, caller: By, wait_s: Annotated[float, Query(ge=0, le=60)] = 0
) -> JobEntry:
    """A job; with `wait_s`, once it has ended or so many seconds have passed."""
    return _entry(await stepgate.jobs.wait(caller.owner, job_id, wait_s))


@router.post("/v1/pipelines/dry-run", responses=ERRORS)
async def dry_run(body: DryRunBody, http: Request, stepgate: Gateway, caller: By) -> ValidationReport:
    """Try a pipeline on a sample of a source. Nothing is written; changes that would help are recommended. It ends when
    the client goes away."""
    roots = stepgate.settings.readable_roots
    trial = stepgate.library.dry_run(
        beneath(body.source, roots),
        body.chosen() or from_template(),
        sample_count=body.sample_count,
        seed=body.seed,
        roots=roots,
    )
    return await while_heard(http, trial)


@router.get("/v1/pipelines/templates", responses=ERRORS)
async def get_templates() -> TemplateEntries:
    """Pipelines to begin with."""
    return TemplateEntries(data=list_templates())


@router.get("/v1/plugins", responses=ERRORS)
async def list_plugins(kind: NodeKind | None = None) -> PluginEntries:
    """What pipelines are made of, with the options of each."""
    return PluginEntries(data=plugins(kind))


@router.get("/v1/plugins/{name}", responses=ERRORS)
async def get_plugin(name: str) -> PluginInfo:
    """One plugin."""
    return plugin(name)


def _entry(job: Job) -> JobEntry:
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
        failure=job.outcome.failure,
        next=_INTERRUPTED if job.status == "interrupted" else "",
        created_at=datetime.fromtimestamp(job.created, UTC),
        updated_at=datetime.fromtimestamp(job.updated, UTC),
    )
