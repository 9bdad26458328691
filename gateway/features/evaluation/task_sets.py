"""The sets of tasks: each is a package below `sets` with its tasks, and with the worlds that they need.

`tasks/FAMILY.yaml` holds the tasks, `data` the state of the servers, the documents and the web site; the modules
`servers` and `tables` have the MCP servers and the tables by name.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from agent.core.errors import ConfigError

if TYPE_CHECKING:
    from gateway.features.evaluation.state_file import BuildServer
    from gateway.features.evaluation.world_tables import Table


class TaskSet(NamedTuple):
    """A set of tasks. `servers` and `tables` are the names that its worlds may use.

    Of a set that is only measured, `stepgate eval` does not report which checks failed, so that nobody tunes by them.
    """

    package: str
    servers: tuple[str, ...]
    tables: tuple[str, ...]
    is_only_measured: bool = False

    @property
    def tasks_folder(self) -> Path:
        """One YAML file for each family."""
        return self._folder / "tasks"

    @property
    def data_folder(self) -> Path:
        """`state.json`, `documents` and `site`."""
        return self._folder / "data"

    @property
    def _folder(self) -> Path:
        return Path(__file__).parent / "sets" / self.package


DEVELOPMENT = "development"
HELD_OUT = "held-out"
PRACTICE = "practice"
SETS: Mapping[str, TaskSet] = {
    DEVELOPMENT: TaskSet(
        "development", ("desk", "office", "shop", "plant"), ("orders", "customers", "readings", "staff")
    ),
    HELD_OUT: TaskSet(
        "held_out",
        ("library", "clinic", "nursery", "buses", "post"),
        ("trips", "vehicles", "ausleihen", "visits"),
        is_only_measured=True,
    ),
    PRACTICE: TaskSet(
        "practice",
        (
            "hotel",
            "leave",
            "warehouse",
            "home",
            "bank",
            "mailbox",
            "code",
            "kitchen",
            "music",
            "bikes",
            "house",
            "club",
            "parcel",
            "theatre",
            "cars",
        ),
        (
            "stock_moves",
            "room_nights",
            "spending",
            "repairs",
            "elmatning",
            "sessions",
            "rounds",
            "ticket_sales",
            "hires",
        ),
    ),
}


def find_set(name: str) -> TaskSet:
    """The set of that name. Raises `ConfigError` that names the sets."""
    if name not in SETS:
        raise ConfigError(f"there is no set of tasks {name!r}; the sets are {', '.join(SETS)}")
    return SETS[name]


def load_servers(set_name: str) -> "Mapping[str, BuildServer]":
    """What builds each MCP server of a set. Imported here because few processes need it."""
    servers: Mapping[str, BuildServer] = _import_module(set_name, "servers").SERVERS
    return servers


def load_tables(set_name: str) -> "Mapping[str, Table]":
    """What makes each table of a set."""
    tables: Mapping[str, Table] = _import_module(set_name, "tables").TABLES
    return tables


def _import_module(set_name: str, name: str) -> ModuleType:
    return import_module(f"gateway.features.evaluation.sets.{find_set(set_name).package}.{name}")
