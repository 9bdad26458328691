"""Skills: folders in the open Agent Skills format. Loaded leniently and used unchanged."""

from agent.skills.library import SkillLibrary, SkillRoot, list_skill_roots
from agent.skills.model import Skill
from agent.skills.parse import read_skill
from agent.skills.validate import validate_skill

__all__ = [
    "Skill",
    "SkillLibrary",
    "SkillRoot",
    "read_skill",
    "list_skill_roots",
    "validate_skill",
]
