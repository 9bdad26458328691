"""Asks a person before a source's credential goes to an address for the first time."""

from fastapi import Request
from fastapi.responses import Response

from gateway.access.authentication import Caller
from gateway.bootstrap import Stepgate
from gateway.doors.asked_calls import ask_person
from gateway.features.documents.engine.ingest.source_pairings import UnpairedCredentialError
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.documents.parts import get_documents
from gateway.features.documents.tools import SOURCE_CREDENTIAL_TOOL


async def ask_about_credential(
    http: Request, stepgate: Stepgate, caller: Caller, source: ConnectorInput, name: str = ""
) -> Response | None:
    """The response with the question to a person; None where the credential may go. Once it is allowed, the source is
    registered and the request may be sent again.

    Raises `UnpairedCredentialError` for callers without the scope `admin`.
    """
    try:
        await get_documents(stepgate).sources.pairings.check(caller.owner, source)
    except UnpairedCredentialError:
        if not caller.has_scope("admin"):
            raise
        args = {**source.model_dump(exclude={"password_id"}), "name": name}
        return await ask_person(http, stepgate, caller, SOURCE_CREDENTIAL_TOOL, args)
    return None
