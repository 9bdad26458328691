"""The server `post`: mails, notices on boards, and text files below `FOLDER/files/out`."""

from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Inputs

Board = Literal["staff", "public", "kitchen"]


class Notice(Inputs):
    """What a notice says."""

    title: str = Field(max_length=60)
    text: str


def build_post(file: StateFile) -> MCPServer:
    """Builds the server of mails, notices and files."""
    server = MCPServer("post")
    out = file.folder / "files" / "out"

    @server.tool(annotations=READ)
    def list_inbox() -> list[dict[str, str]]:
        """List the mails that came in, without their text."""
        mails = file.load()["inbox"]
        return [{"mail": key, "sender": mail["sender"], "subject": mail["subject"]} for key, mail in mails.items()]

    @server.tool(annotations=READ)
    def read_mail(mail: str) -> dict[str, str]:
        """Return a mail with its text."""
        return {"mail": mail, **find_record(file.load()["inbox"], mail, "mail")}

    @server.tool(annotations=EFFECT)
    def send_mail(to: list[str], subject: str, body: str, copy_to: list[str] | None = None) -> str:
        """Send a mail to one or more addresses."""
        if wrong := [address for address in (*to, *(copy_to or ())) if "@" not in address]:
            raise ToolError(f"{wrong[0]!r} is not a mail address; nothing was sent")
        with file.change() as state:
            copies = {"copy_to": copy_to} if copy_to else {}
            state["sent"].append({"to": to, "subject": subject, "body": body, **copies})
        return f"sent to {', '.join(to)}"

    @server.tool(annotations=READ)
    def list_notices(board: Board | None = None) -> list[dict[str, Any]]:
        """List the notices on all boards or on one."""
        notices = file.load()["notices"]
        return [{"notice": key, **notice} for key, notice in notices.items() if board in (None, notice["board"])]

    @server.tool(annotations=EFFECT)
    def pin_notice(board: Board, notice: Notice) -> str:
        """Pin a notice on a board. Returns its id."""
        with file.change() as state:
            key = f"N-{1 + len(state['notices'])}"
            state["notices"][key] = {"board": board, **notice.model_dump()}
        return key

    @server.tool(annotations=DELETE)
    def remove_notice(notice: str) -> str:
        """Take a notice off its board, by its id."""
        with file.change() as state:
            find_record(state["notices"], notice, "notice")
            del state["notices"][notice]
        return f"{notice} is removed"

    @server.tool(annotations=WRITE)
    def save_text(path: str, content: str) -> str:
        """Save a text file in the folder out; replaces an existing one."""
        target = _resolve(out, path)
        target.write_text(content, "utf-8")
        return f"out/{target.name} is saved"

    return server


def _resolve(out: Path, path: str) -> Path:
    name = path.removeprefix("out/")
    if "/" in name or name.startswith("."):
        raise ToolError("path must be a plain file name such as list.txt")
    return out / name
