"""The stages of a run, one file each. A stage reads the log first and does only what is missing."""

from agent.execution.stages.approve import approve
from agent.execution.stages.execute import execute
from agent.execution.stages.finalize import finalize
from agent.execution.stages.guard import guard
from agent.execution.stages.plan import plan
from agent.execution.stages.retrieve import retrieve
from agent.execution.stages.translate import translate
from agent.execution.stages.understand import understand
from agent.execution.stages.verify import verify

__all__ = ["approve", "execute", "finalize", "guard", "plan", "retrieve", "translate", "understand", "verify"]
