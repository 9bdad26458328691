"""`/v1/admin/models`: the models of this gateway, those found on this machine, and choosing one. Needs the scope
`admin`; on a gateway without keys the owner of the machine has it.
"""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi import Path as PathParameter
from pydantic import Field

from agent.core.containers import get_example_address
from agent.core.errors import AgentError, NotFoundError
from agent.core.model_endpoints import NAME
from agent.core.models import LOCAL_OWNER, DeferredModel, JsonObject
from agent.core.record_item import RecordItem
from agent.llm.model_address import ModelAddress, read_address, read_key
from agent.llm.profile import Count, ProfileSource, choose_profile, get_profile_source
from agent.llm.saved_models import BOTH_ROLES, ModelName, Role
from agent.storage.audit import AuditEvent
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import StrictBody
from gateway.model_choice import (
    CheckedModel,
    ModelState,
    check_configured,
    choose_model,
    find_endpoints,
    format_offer,
    make_endpoint_entry,
    make_file_entry,
    test_endpoint,
    test_file,
)
from gateway.render.error_responses import FieldError

router = APIRouter(tags=["models"], route_class=JsonRoute, dependencies=[require_scope("admin")])

EndpointName = Annotated[str, PathParameter(pattern=f"^{NAME.pattern}$", description="of a saved model")]
Url = Annotated[str, Field(max_length=2000, description="OpenAI-compatible, such as http://127.0.0.1:11434/v1")]
Key = Annotated[
    str | None, Field(max_length=4000, description="bearer key of the endpoint; unset: the saved one of this name")
]


class ModelItem(DeferredModel):
    """A configured model. Models are asked in their order, within each role."""

    name: str = Field(description="of its endpoint; `default` for AGENT_LLM_BASE_URL")
    model: str
    base_url: str | None = Field(description="null for a provider that LiteLLM calls, and for a file")
    file: str | None = Field(description="a GGUF file that the gateway serves itself")
    product: str
    vision: bool = Field(description="whether its trial showed that it reads pictures")
    roles: list[Role]
    source: Literal["environment", "file"] = Field(description="`file` can be changed here")
    has_key: bool
    state: ModelState = Field(description="`unused`: the environment names other models, which win")
    reason: str = Field(description="why it is not reachable, or not used")


class FoundModelItem(RecordItem):
    """A chat model that a program on this machine serves."""

    name: str
    short_name: str
    size_bytes: int | None
    context_tokens: int | None


class FoundEndpointItem(DeferredModel):
    """A program on this machine that serves models. It is not used unless it is chosen."""

    product: str
    base_url: str
    models: list[FoundModelItem]
    offer: str = Field(description="the offer as a line, with the command that accepts it")


class MeasuredItem(RecordItem):
    """What was measured of the fast model."""

    measured_at: datetime
    is_complete: bool = Field(description="false: not every task was asked")
    takes_schema: bool
    call_forms: list[str]
    longest_catalogue: int
    context_tokens: int | None
    languages: list[str]
    follows_verdicts: bool
    counts: dict[str, Count] = Field(description="by kind of task: how many were right, how many were asked")
    first_token_s: float
    prompt_tokens_per_s: float
    tokens_per_s: float
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


class ProfileItem(DeferredModel):
    """How the engine works with the fast model."""

    setting: Literal["auto", "small", "capable"] = Field(description="AGENT_MODEL_PROFILE")
    decides: Literal["rounds", "plans"]
    checks_answers: bool
    source: ProfileSource = Field(description="`default`: the model was not measured yet")
    measured: MeasuredItem | None = Field(description="null if the model was not measured")


class ModelReport(DeferredModel):
    """The models of this gateway, and what could be chosen."""

    is_configured: bool = Field(description="false: rules mode")
    fast: str | None
    high: str | None
    configured: list[ModelItem]
    found: list[FoundEndpointItem] = Field(description="on this machine, without the models that are configured")
    not_searched: str | None = Field(description="why this machine was not searched; null if it was")
    example_url: str = Field(description="what the address of a model may look like here: another in a container")
    profile: ProfileItem
    fault: str = Field(description="why the saved list cannot be used; empty if it can")


class ModelTrialBody(StrictBody):
    """A model to try."""

    base_url: Url | None = None
    file: Annotated[str | None, Field(max_length=4000, description="path of a GGUF file, in place of base_url")] = None
    model: Annotated[str | None, Field(max_length=500, description="unset: the endpoint's first one")] = None
    api_key: Key = None
    name: Annotated[str | None, Field(pattern=f"^{NAME.pattern}$", description="saved endpoint whose key is used")] = (
        None
    )


class ModelChoiceBody(ModelTrialBody):
    """A model to try and, if it answers, to save and use before the others."""

    model: Annotated[ModelName | None, Field(description="required with base_url")] = None
    roles: Annotated[tuple[Role, ...], Field(min_length=1)] = BOTH_ROLES
    product: Annotated[str, Field(max_length=100)] = ""


class ModelTrialItem(RecordItem):
    """What became of one real call."""

    ok: bool
    reason: str = Field(description="why it failed; empty if it did not")
    model: str
    base_url: str = Field(description="where the API was found: the address itself, or `/v1` below or beside it")
    reply: str = Field(description="beginning of the model's text")
    seconds: float
    prompt_tokens: int
    completion_tokens: int


@router.get("/v1/admin/models", responses=ERRORS)
async def get_models(stepgate: Gateway) -> ModelReport:
    """Return the configured models with their state, the models found on this machine, and the profile."""
    return await _build_report(stepgate)


@router.post("/v1/admin/models/test", responses=ERRORS)
async def test_model(body: ModelTrialBody, stepgate: Gateway) -> ModelTrialItem:
    """Make one real call of a model, of at most 16 tokens. Nothing is saved; `ok` says whether it answered."""
    if body.file is not None:
        return ModelTrialItem.model_validate(await test_file(stepgate.settings, _get_file(body), looks=False))
    url, key = _get_address(body).base_url, await _find_key(stepgate, body)
    return ModelTrialItem.model_validate(await test_endpoint(url, key, body.model, looks=False))


@router.post("/v1/admin/models", status_code=201, responses=ERRORS)
async def save_model(body: ModelChoiceBody, stepgate: Gateway, caller: CurrentCaller) -> ModelReport:
    """Try a model with a real call, then save it before the others and use it at once. 400 if it does not answer:
    nothing is saved then.
    """
    key = None
    if body.file is not None:
        entry = make_file_entry(_get_file(body), body.roles, body.name)
    else:
        url, key = _get_address(body).base_url, await _find_key(stepgate, body)
        if body.model is None:
            raise FieldError("name the model", "model")
        saved = await asyncio.to_thread(stepgate.live_models.saved.read)
        entry = make_endpoint_entry(url, body.model, body.roles, name=body.name, product=body.product, saved=saved)
    detail: JsonObject = {"base_url": entry.base_url, "file": entry.file}
    event = AuditEvent("model.save", entry.name, owner=LOCAL_OWNER, by=caller.name, detail=detail)
    async with stepgate.audit.record_before(event):
        await choose_model(stepgate.live_models, entry, key)
    return await _build_report(stepgate)


@router.delete("/v1/admin/models/{name}", responses=ERRORS)
async def remove_model(name: EndpointName, stepgate: Gateway, caller: CurrentCaller) -> ModelReport:
    """Remove a saved model and its key. Models of the environment cannot be removed here."""
    async with stepgate.audit.record_before(AuditEvent("model.remove", name, owner=LOCAL_OWNER, by=caller.name)):
        if not await stepgate.live_models.remove(name):
            raise NotFoundError(f"no saved model has the name {name!r}")
    return await _build_report(stepgate)


async def _build_report(stepgate: Stepgate) -> ModelReport:
    live, tiers = stepgate.live_models, stepgate.models
    configured, discovered = await asyncio.gather(
        check_configured(live), find_endpoints(stepgate.settings, (*tiers.configured, *live.unused))
    )
    setting, measured = stepgate.settings.model_profile, tiers.measured
    profile = choose_profile(setting, measured)
    return ModelReport(
        is_configured=tiers.is_configured,
        fast=tiers.fast,
        high=tiers.high or tiers.fast,
        configured=[_to_item(one) for one in configured],
        found=[
            FoundEndpointItem(
                product=one.product,
                base_url=one.base_url,
                models=FoundModelItem.from_records(one.models),
                offer=format_offer(one),
            )
            for one in discovered.found
        ],
        not_searched=discovered.obstacle,
        example_url=get_example_address(),
        profile=ProfileItem(
            setting=setting,
            decides=profile.decides,
            checks_answers=profile.checks_answers,
            source=get_profile_source(setting, measured),
            measured=MeasuredItem.model_validate(measured) if measured is not None else None,
        ),
        fault=live.fault,
    )


def _to_item(checked: CheckedModel) -> ModelItem:
    model = checked.model
    return ModelItem(
        name=model.name,
        model=model.model,
        base_url=model.base_url,
        file=model.file,
        product=model.product,
        vision=model.vision,
        roles=[*model.roles],
        source=model.source,
        has_key=model.has_key,
        state=checked.state,
        reason=checked.reason,
    )


async def _find_key(stepgate: Stepgate, body: ModelTrialBody) -> str | None:
    """The key in the body or the login in its address, else the stored key of the saved endpoint, which is sent to its
    own address only.
    """
    address = _get_address(body)
    if body.api_key is not None:
        try:
            return read_key(body.api_key)
        except ValueError as error:
            raise FieldError(f"api_key {error}", "api_key") from error
    live = stepgate.live_models
    saved = next((one for one in await asyncio.to_thread(live.saved.read) if one.name == body.name), None)
    if address.login is not None or saved is None or saved.base_url != address.base_url:
        return address.login
    try:
        return await asyncio.to_thread(live.find_key, saved)
    except AgentError as error:
        raise FieldError(error.message, "api_key") from error


def _get_address(body: ModelTrialBody) -> ModelAddress:
    try:
        return read_address(body.base_url or "")
    except ValueError as error:
        raise FieldError(f"base_url {error}", "base_url") from error


def _get_file(body: ModelTrialBody) -> Path:
    if body.base_url is not None or body.api_key is not None:
        raise FieldError("a file has no base_url and no api_key", "file")
    return Path(body.file or "")
