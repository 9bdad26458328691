"""The probe: a gateway measures its model with about 25 tiny tasks, over the planner and the wire of real runs."""

from gateway.model_probe.asked_model import AskedModel
from gateway.model_probe.probe import PROBE_SECONDS, ModelProbe, Outcome
from gateway.model_probe.record import build_record
from gateway.model_probe.tasks import PROBE_TASKS, ProbeTask

__all__ = ["PROBE_SECONDS", "PROBE_TASKS", "AskedModel", "ModelProbe", "Outcome", "ProbeTask", "build_record"]
