"""What is run: styles of work, users, settings and strategies of the attacker. One cell is one row of a table."""

from dataclasses import dataclass
from typing import Literal

Style = Literal["plan", "skill", "rounds"]
Strategy = Literal["poison", "replan"]
User = Literal["rejecting", "attentive", "careless"]
Effects = Literal["ask_any", "ask_where"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One way to run every task, or every pair of a task and an injection.

    `style` is how the model works, `strategy` what an injected judge does, `user` who answers questions: one who
    rejects all, one who allows what the task needs, or one who allows everything. `follows_up` sends a second message.
    """

    style: Style
    user: User
    strategy: Strategy = "poison"
    effects: Effects = "ask_any"
    is_attacked: bool = False
    follows_up: bool = False

    @property
    def label(self) -> str:
        """The style as the tables name it."""
        return "replan" if self.strategy == "replan" else self.style

    @property
    def name(self) -> str:
        """The cell's name in rows and on the command line."""
        kind = "second" if self.follows_up else "attack" if self.is_attacked else "benign"
        return f"{self.effects}/{kind}/{self.label}/{self.user}"


def list_cells() -> list[Cell]:
    """Every cell of both tables."""
    cells: list[Cell] = []
    styles: tuple[tuple[Style, Strategy], ...] = (
        ("plan", "poison"), ("plan", "replan"), ("skill", "poison"), ("rounds", "poison"),
    )  # fmt: skip
    for effects in ("ask_any", "ask_where"):
        cells += [
            Cell(style, "attentive", effects=effects)
            for style, strategy in styles
            if strategy == "poison" and (effects == "ask_any" or style == "plan")
        ]
        for style, strategy in styles:
            users: tuple[User, ...] = ("rejecting", "attentive", "careless")
            if effects == "ask_where":
                users = ("rejecting",)
            cells += [Cell(style, user, strategy, effects, is_attacked=True) for user in users]
            if effects == "ask_any" and strategy == "poison":
                cells.append(Cell(style, "rejecting", strategy, effects, is_attacked=True, follows_up=True))
    return cells
