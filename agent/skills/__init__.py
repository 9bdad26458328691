"""Skills: folders in the open Agent Skills format, loaded leniently, used as their authors wrote them."""

from agent.skills.library import SkillLibrary, SkillRoot, refuse_unknown_skills, skill_roots
from agent.skills.model import Skill
from agent.skills.parse import read_skill
from agent.skills.validate import validate_skill

__all__ = ["Skill", "SkillLibrary", "SkillRoot", "read_skill", "refuse_unknown_skills", "skill_roots", "validate_skill"]
