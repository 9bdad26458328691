"""The source of each entity of the graph: a file of the code or the configuration, or a table.

Paths start at a known folder (the packages, the folder of a skill, the operator's rooms), never at the machine's root.
"""

from agent.skills import Skill
from agent.tools import Tool
from agent.tools.catalogue import get_server_name, is_foreign
from gateway.features.studio.engine.generated_tools.generated_tool import GENERATED_ORIGIN


def find_tool_source(tool: Tool) -> str:
    """Names the file and line of the tool's code, the server that offers it, or the table of generated tools."""
    spec = tool.spec
    if is_foreign(spec):
        return f"MCP server {get_server_name(spec)}"
    if spec.origin == GENERATED_ORIGIN:
        return f"table tool_versions, name {spec.name}"
    kind = type(tool)
    path = f"{kind.__module__.replace('.', '/')}.py"
    for name in ("run", "call"):
        code = getattr(kind.__dict__.get(name), "__code__", None)
        if code is not None:
            return f"{path}:{code.co_firstlineno}"
    return path


def find_skill_source(skill: Skill) -> str:
    """Names the file of the skill's instructions, from the folder of skills on."""
    parts = skill.path.parts[-2:] if skill.is_flat else skill.path.parts[-3:]
    return "/".join(parts)
