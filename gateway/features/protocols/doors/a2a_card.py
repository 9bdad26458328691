"""The agent card of the A2A door: what the agent can do, and where.

Imports the A2A SDK, so only the loaded door imports this module.
"""

from importlib.metadata import version

from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from agent.core.models import Room
from gateway.bootstrap import Stepgate
from gateway.features.documents.engine.ingest.file_types import MEDIA_TYPES
from gateway.features.protocols.doors.lazy_a2a import RPC_PATH

PROTOCOL_VERSIONS = ("1.0", "0.3")


def build_agent_card(stepgate: Stepgate, base_url: str) -> AgentCard:
    """The card of the agent at `base_url`. Each room is a skill; where keys are required, only the default one
    is shown, because anybody may read the card.
    """
    requires_key = stepgate.authenticator.requires_key
    default = stepgate.rooms.get(None, None)
    return AgentCard(
        name="Stepgate",
        description="Plans a task, runs the plan with tools and skills under supervision, and answers with its trace.",
        version=version("stepgate"),
        supported_interfaces=[
            AgentInterface(url=base_url + RPC_PATH, protocol_binding="JSONRPC", protocol_version=one)
            for one in PROTOCOL_VERSIONS
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain", "application/json", "image/png", "image/jpeg", *MEDIA_TYPES],
        default_output_modes=["text/markdown"],
        skills=[_describe_room(room) for room in ([default] if requires_key else stepgate.rooms)],
        security_schemes=(
            {"bearer": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))}
            if requires_key
            else {}
        ),
        security_requirements=[SecurityRequirement(schemes={"bearer": StringList()})] if requires_key else [],
    )


def _describe_room(room: Room) -> AgentSkill:
    return AgentSkill(
        id=room.id,
        name=room.name or room.id,
        description=room.description or f"The room {room.id}: send its id as `room` in the message's metadata.",
        tags=["room"],
    )
