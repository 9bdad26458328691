"""`read_skill_file`: reads a skill's own references and assets; paths outside its folder are refused."""

import asyncio

from pydantic import BaseModel, Field

from agent.skills import Skill
from agent.tools import READ_ONLY, ToolContext, TypedTool


class SkillFileInput(BaseModel):
    """Which file."""

    path: str = Field(description="path of the file, relative to the skill's folder")


class SkillFileOutput(BaseModel):
    """The file's text."""

    path: str
    text: str


class SkillFileTool(TypedTool[SkillFileInput, SkillFileOutput]):
    """Reads the files of one skill. Only that skill can call it."""

    name = "read_skill_file"
    description = "Read one of this skill's own files (references, assets)."
    annotations = READ_ONLY

    def __init__(self, skill: Skill) -> None:
        super().__init__()
        self._skill = skill

    async def run(self, args: SkillFileInput, context: ToolContext) -> SkillFileOutput:
        """Reads the file in a thread."""
        return SkillFileOutput(path=args.path, text=await asyncio.to_thread(self._skill.read_file, args.path))

    def format_text(self, output: SkillFileOutput) -> str:
        """The file's text only."""
        return output.text
