"""The findings of `stepgate doctor` about models: those in use, the saved list, and what this machine offers."""

from collections.abc import AsyncIterator

from gateway.bootstrap import Stepgate
from gateway.cli.doctor_finding import DoctorFinding
from gateway.model_choice import check_configured, find_endpoints, format_offer
from gateway.model_probe.report import format_profile
from gateway.readiness import ComponentStatus

_WITHOUT_OFFER = (
    "`stepgate models use MODEL --at URL` (docs/local-models.md), or AGENT_MODEL_FAST=<LiteLLM name> with the "
    "provider's key"
)
_REMEDY = "check AGENT_LLM_BASE_URL, AGENT_LLM_API_KEY and the endpoint"
_SAVED_REMEDY = "check the endpoint, or save the model again: `stepgate models use`"


async def check_models(stepgate: Stepgate, status: ComponentStatus) -> AsyncIterator[DoctorFinding]:
    """Yields whether models can be asked, and every configured one that cannot."""
    live = stepgate.live_models
    if stepgate.models.is_configured:
        is_saved = any(model.source == "file" for model in live.tiers.configured)
        yield DoctorFinding("models", status.ok, status.detail, _SAVED_REMEDY if is_saved else _REMEDY)
        if live.tiers.measured is not None:
            yield DoctorFinding("model profile", True, format_profile(live.tiers.measured))
    else:
        endpoints = (await find_endpoints(stepgate.settings)).found
        offers = "; ".join(format_offer(endpoint) for endpoint in endpoints)
        yield DoctorFinding("models", False, "none configured, rules mode", offers or _WITHOUT_OFFER, fatal=False)
    if live.fault:
        yield DoctorFinding("saved models", False, live.fault, "correct or remove the file", fatal=False)
    configured = await check_configured(live)
    for checked in configured if len(configured) > 1 else ():
        if checked.state != "reachable":
            remedy = f"start it, or `stepgate models remove {checked.model.name}`"
            detail = f"{checked.state}: {checked.reason}"
            yield DoctorFinding(f"model {checked.model.model}", checked.state == "unused", detail, remedy, fatal=False)
