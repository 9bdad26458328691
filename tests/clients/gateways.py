"""What the clients talk to: a gateway before a scripted model, and one in rules mode."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import GatewayProcess
from tests.support.script import Call, Rule, Script, answers, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import concludes, intent, routes
from tests.support.tool_scripts import CODE, ToolScript

PERSON = json.dumps({"name": "Ada", "age": 36})
CAREFUL_ROOM = "id: careful\nname: Careful\napproval: always\nsupervision: checks\n"
TABLE = "| city | degrees |\n| --- | --- |\n| Lund | 12 |\n"
STEPS = ({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"})


def build_script() -> Script:
    """Returns what the model answers, by words of the request. The scripts of the clients use the same words."""
    call = Call("get_weather", {"city": "Lund"}, id="call_weather1")
    return script(
        says("It is 12 degrees in Lund.", about="12 degrees"),
        says(about="weather in Lund", calls=(call,)),
        says(PERSON, about="Invent a person"),
        says(about="Report a person", calls=(Call("final_result", {"name": "Ada", "age": 36}, id="call_final1"),)),
        says("You are Ada-Marie.", about="I am Ada-Marie"),
        says("This took long.", about="Answer slowly", delay_s=20),
        answers("The third quarter had 17 orders.", about="the third quarter"),
        says(json.dumps({"kind": "ask", "question": "Which quarter?"}), to="planner", about="How many orders"),
        answers(f"```markdown\n{TABLE}```", about="as a table"),
        says('{"title": "Chat about sums"}', to="task"),
        *build_studio_rules(),
        plans(*STEPS, about="2*21"),
        says("It is 42, as computed.", to="completion", about="2*21"),
        says("Hello from the model."),
    )


def build_studio_rules() -> tuple[Rule, ...]:
    """Returns what the room `studio` hears: a question, a room, and a tool that fails once and then works."""
    broken = CODE.replace("digits + letter.upper()", "letter")
    tool = intent("tool_generation", "tool_generate", description="Convert our part numbers: A-12 becomes 12A.")
    return (
        routes(intent("query", "rooms_list"), about="Which rooms are there"),
        routes(intent("room_management", "room_create", name="Support Team"), about="Make a room called"),
        routes(intent("query", "compare"), about="Compare the rooms"),
        routes(tool, about="Write a tool"),
        concludes("They differ in their tools.", about="query: compare"),
        concludes("It could not be made.", about="stage: tests"),
        concludes("As you wish.", about="did not allow"),
        *ToolScript(codes=(broken, broken, broken, CODE)).rules(),
    )


@contextmanager
def run_gateways(folder: Path) -> Iterator[dict[str, str]]:
    """Runs both gateways; yields their addresses as environment variables of a client's script."""
    rooms = folder / "rooms"
    rooms.mkdir(parents=True)
    (rooms / "careful.yaml").write_text(CAREFUL_ROOM, "utf-8")
    settings = {"rooms_dir": str(rooms), "drain_seconds": "1"}
    with ScriptedServer(build_script()) as model:
        models = {"llm_base_url": model.url, "model_fast": "small", "model_high": "large"}
        models |= {"embedder_url": model.url, "embedder_model": "default"}
        with (
            GatewayProcess(folder / "with-model", **settings, **models) as with_model,
            GatewayProcess(folder / "rules", **settings) as rules,
        ):
            yield {"STEPGATE_URL": with_model.url, "STEPGATE_RULES_URL": rules.url, "STEPGATE_MODEL_URL": model.root}
