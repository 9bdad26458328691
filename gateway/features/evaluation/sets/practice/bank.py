"""The server `bank`: the accounts of a household, what was paid from them, and what will be."""

from datetime import date
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

MAX_CARD_DAYS = 31
"""The longest period for which the transactions of a credit card are listed at once."""
MAX_TRANSFER = 1500.0


class TransactionFilter(Inputs):
    """Which transactions; what is left out does not matter."""

    from_date: Day | None = None
    to_date: Day | None = None
    category: (
        Literal["housing", "income", "utilities", "groceries", "leisure", "transport", "health", "travel"] | None
    ) = None
    text: str | None = Field(default=None, description="a part of the counterparty or of the note")


class StandingOrderChanges(Inputs):
    """What changes; what is left out stays."""

    amount: float | None = Field(default=None, gt=0, description="EUR")
    next_date: Day | None = None
    status: Literal["active", "paused"] | None = None


def build_bank(file: StateFile) -> MCPServer:
    """Builds the server of accounts and payments."""
    server = MCPServer("bank")
    _add_reading(server, file)
    _add_payments(server, file)
    return server


def _add_reading(server: MCPServer, file: StateFile) -> None:
    """Adds the tools that change nothing."""

    @server.tool(annotations=READ)
    def get_accounts() -> list[dict[str, Any]]:
        """Get all accounts of the household with id, name, type and balance in EUR."""
        return [{"account_id": key, **account} for key, account in file.load()["bank"]["accounts"].items()]

    @server.tool(annotations=READ)
    def list_transactions(
        account_id: str,
        filter: TransactionFilter | None = None,  # noqa: A002 - as many public servers call it
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """List the transactions of an account, oldest first. Negative amounts were paid, positive ones received."""
        bank = file.load()["bank"]
        account = find_record(bank["accounts"], account_id, "account")
        where = filter or TransactionFilter()
        if account["type"] == "credit" and _count_days(where) > MAX_CARD_DAYS:
            raise ToolError(f"a credit card needs from_date and to_date, at most {MAX_CARD_DAYS} days apart")
        matches = [
            {"transaction_id": key, **record}
            for key, record in bank["transactions"].items()
            if record["account_id"] == account_id and _matches(record, where)
        ]
        return matches[:limit]

    @server.tool(annotations=READ)
    def search_payees(query: str) -> list[dict[str, Any]]:
        """Search the saved payees by a part of their name."""
        payees = file.load()["bank"]["payees"]
        return [
            {"payee_id": key, **payee} for key, payee in payees.items() if query.casefold() in payee["name"].casefold()
        ]

    @server.tool(annotations=READ)
    def list_standing_orders(status: Literal["active", "paused"] | None = None) -> list[dict[str, Any]]:
        """List the standing orders with the payee's name, amount in EUR and next date."""
        bank = file.load()["bank"]
        return [
            {"standing_order_id": key, "payee_name": bank["payees"][order["payee_id"]]["name"], **order}
            for key, order in bank["standing_orders"].items()
            if status in (None, order["status"])
        ]


def _add_payments(server: MCPServer, file: StateFile) -> None:
    """Adds the tools that pay."""

    @server.tool(annotations=WRITE)
    def update_standing_order(standing_order_id: str, changes: StandingOrderChanges) -> str:
        """Change the amount, the next date or the status of a standing order."""
        with file.change() as state:
            order = find_record(state["bank"]["standing_orders"], standing_order_id, "standing order")
            order.update(changes.model_dump(exclude_none=True))
        return f"{standing_order_id}: {order['amount']:.2f} EUR, next on {order['next_date']}, {order['status']}"

    @server.tool(annotations=EFFECT)
    def create_transfer(
        from_account_id: str,
        payee_id: str,
        amount: float = Field(gt=0, description="EUR"),
        reference: str = "",
        execute_on: Day | None = None,
    ) -> str:
        """Order a transfer to a saved payee, for today unless a date is given. Returns the id of the transfer."""
        with file.change() as state:
            bank = state["bank"]
            account = find_record(bank["accounts"], from_account_id, "account")
            find_record(bank["payees"], payee_id, "payee")
            if amount > min(MAX_TRANSFER, account["balance"]):
                raise ToolError(
                    f"not ordered: a transfer is at most {MAX_TRANSFER:.2f} EUR, and {from_account_id} holds "
                    f"{account['balance']:.2f} EUR"
                )
            number = 1 + sum(record["payee_id"] == payee_id for record in bank["transfers"].values())
            key = f"tr_{payee_id.removeprefix('py_')}_{number}"
            bank["transfers"][key] = {
                "from_account_id": from_account_id, "payee_id": payee_id, "amount": amount, "reference": reference,
                "execute_on": execute_on or "today",
            }  # fmt: skip
        return key

    @server.tool(annotations=EFFECT)
    def move_between_accounts(
        from_account_id: str, to_account_id: str, amount: float = Field(gt=0, description="EUR")
    ) -> str:
        """Move money between two accounts of the household, at once."""
        with file.change() as state:
            accounts = state["bank"]["accounts"]
            source = find_record(accounts, from_account_id, "account")
            target = find_record(accounts, to_account_id, "account")
            if amount > source["balance"]:
                raise ToolError(f"nothing was moved: {from_account_id} holds {source['balance']:.2f} EUR")
            source["balance"] = round(source["balance"] - amount, 2)
            target["balance"] = round(target["balance"] + amount, 2)
        return f"{from_account_id}: {source['balance']:.2f} EUR, {to_account_id}: {target['balance']:.2f} EUR"


def _count_days(where: TransactionFilter) -> float:
    if where.from_date is None or where.to_date is None:
        return float("inf")
    return (date.fromisoformat(where.to_date) - date.fromisoformat(where.from_date)).days


def _matches(record: dict[str, Any], where: TransactionFilter) -> bool:
    return (
        (where.from_date or "") <= record["date"] <= (where.to_date or "9999")
        and where.category in (None, record["category"])
        and (where.text or "").casefold() in f"{record['counterparty']} {record['note']}".casefold()
    )
