"""Arguments that a tool does not know: left out of the call, and told with its result."""

from agent.core.models import JsonObject
from agent.tools import ToolSpec


def known_args(spec: ToolSpec, args: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """The arguments the tool takes, and the names of the others.

    Our own tools take what their schemas name. A foreign tool may take more than it names, unless it says that it
    does not; and a foreign tool that changes something refuses such a call, for nobody knows what the argument that is
    missing then was to prevent."""
    properties = spec.input_schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    open_ended = spec.input_schema.get("additionalProperties", spec.origin != "builtin")
    if "properties" not in spec.input_schema or open_ended is not False or spec.input_schema.get("patternProperties"):
        return args, ()
    if spec.origin != "builtin" and spec.effect == "effect":
        return args, ()
    dropped = tuple(name for name in args if name not in named)
    return {name: value for name, value in args.items() if name in named} if dropped else args, dropped
