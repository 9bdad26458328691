"""The routes: list favourite poems, and add one."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel

from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.doors.dependencies import Gateway
from stepgate_poems.parts import get_poems

router = APIRouter(tags=["poems"], dependencies=[require_scope("agent")])


class Favourites(BaseModel):
    """Titles, oldest first."""

    data: list[str]


@router.get("/v1/poems")
async def list_poems(stepgate: Gateway, caller: CurrentCaller) -> Favourites:
    """List the caller's favourite poems."""
    return Favourites(data=await get_poems(stepgate).list_titles(caller.owner))


@router.put("/v1/poems/{title}")
async def add_poem(title: Annotated[str, Path(max_length=200)], stepgate: Gateway, caller: CurrentCaller) -> Favourites:
    """Add a poem to the caller's favourites."""
    await get_poems(stepgate).add(caller.owner, title)
    return Favourites(data=await get_poems(stepgate).list_titles(caller.owner))
