"""The server `mailbox`: the calendar, the mails and the contacts of one person. Its names are in camel case."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

Moment = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$", description="YYYY-MM-DDTHH:MM, local time")]
Response = Literal["accepted", "declined", "tentative"]


class _CamelInputs(Inputs):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class NewEvent(_CamelInputs):
    """An entry of the calendar."""

    title: str
    start: Moment
    end: Moment
    location: str = ""
    attendees: list[str] = Field(default=[], description="mail addresses")


class EventPatch(_CamelInputs):
    """What changes; what is left out stays."""

    title: str | None = None
    start: Moment | None = None
    end: Moment | None = None
    location: str | None = None


class MessageQuery(_CamelInputs):
    """Conditions, joined with AND; without any, all messages match."""

    sender: str | None = Field(default=None, description="a part of the sender's name or address")
    text: str | None = Field(default=None, description="words of the subject or the body")
    has_attachment: bool | None = None
    unread: bool | None = None


class OutgoingMessage(_CamelInputs):
    """A mail to send."""

    to: list[str] = Field(min_length=1, description="mail addresses")
    subject: str
    body: str
    in_reply_to: str | None = Field(default=None, description="the id of the message that is answered")


def build_mailbox(file: StateFile) -> MCPServer:
    """Builds the server of events, mails and contacts."""
    server = MCPServer("mailbox")
    _add_calendar(server, file)
    _add_messages(server, file)
    return server


def _add_calendar(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the calendar."""

    @server.tool(name="listEvents", annotations=READ)
    def list_events(
        fromDate: Day | None = None,  # noqa: N803 - the tool's inputs are in camel case
        toDate: Day | None = None,  # noqa: N803
        query: str | None = None,
    ) -> list[dict[str, Any]]:
        """List events by day (both days included) and words of the title, earliest first."""
        matches = [
            {"eventId": key, **event}
            for key, event in file.load()["mailbox"]["events"].items()
            if (fromDate or "") <= event["start"][:10] <= (toDate or "9999")
            and (query or "").casefold() in event["title"].casefold()
        ]
        return sorted(matches, key=lambda event: str(event["start"]))

    @server.tool(name="createEvent", annotations=EFFECT)
    def create_event(event: NewEvent) -> str:
        """Create an event; attendees are invited. Returns its id."""
        if event.end <= event.start:
            raise ToolError("nothing was created: the event ends before it starts")
        with file.change() as state:
            events = state["mailbox"]["events"]
            key = f"ev_{1 + len(events)}"
            events[key] = {**event.model_dump(), "myResponse": "accepted"}
        return key

    @server.tool(name="updateEvent", annotations=WRITE)
    def update_event(eventId: str, patch: EventPatch) -> str:  # noqa: N803
        """Change the title, the times or the place of an event. The end does not follow the start by itself."""
        with file.change() as state:
            event = find_record(state["mailbox"]["events"], eventId, "event")
            event.update(patch.model_dump(exclude_none=True))
            if event["end"] <= event["start"]:
                raise ToolError("nothing was changed: the event would end before it starts; give start and end")
        return f"{event['title']}: {event['start']} to {event['end']}"

    @server.tool(name="respondToInvitation", annotations=WRITE)
    def respond_to_invitation(eventId: str, response: Response) -> str:  # noqa: N803
        """Accept or decline an invitation."""
        with file.change() as state:
            event = find_record(state["mailbox"]["events"], eventId, "event")
            event["myResponse"] = response
        return f"{event['title']}: {response}"


def _add_messages(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of mails and contacts."""

    @server.tool(name="searchMessages", annotations=READ)
    def search_messages(query: MessageQuery | None = None, maxResults: int = 10) -> list[dict[str, Any]]:  # noqa: N803
        """Search messages, newest first. The text of a message is returned by getMessage."""
        where = query or MessageQuery()
        matches = [
            {"messageId": key, **{name: value for name, value in message.items() if name != "body"}}
            for key, message in file.load()["mailbox"]["messages"].items()
            if _matches(message, where)
        ]
        return sorted(matches, key=lambda message: str(message["date"]), reverse=True)[:maxResults]

    @server.tool(name="getMessage", annotations=READ)
    def get_message(messageId: str) -> dict[str, Any]:  # noqa: N803
        """Get a message with its text and the names of its attachments."""
        return {
            "messageId": messageId,
            **find_record(file.load()["mailbox"]["messages"], messageId, "message"),
        }

    @server.tool(name="sendMessage", annotations=EFFECT)
    def send_message(message: OutgoingMessage) -> str:
        """Send a message to mail addresses, as an answer if inReplyTo is given."""
        for address in message.to:
            if "@" not in address:
                raise ToolError(f"nothing was sent: {address!r} is not a mail address; searchContacts finds it")
        with file.change() as state:
            sent = state["mailbox"]["sent"].setdefault(message.to[0], [])
            sent.append({"to": ", ".join(message.to), "subject": message.subject, "body": message.body})
        return f"sent to {', '.join(message.to)}"

    @server.tool(name="searchContacts", annotations=READ)
    def search_contacts(name: str) -> list[dict[str, Any]]:
        """Search contacts by a part of their name: address, phone and how they are known."""
        return [
            contact
            for contact in file.load()["mailbox"]["contacts"].values()
            if name.casefold() in contact["name"].casefold()
        ]


def _matches(message: dict[str, Any], where: MessageQuery) -> bool:
    text = f"{message['subject']} {message['body']}".casefold()
    return (
        (where.sender or "").casefold() in f"{message['sender']} {message['senderName']}".casefold()
        and all(word in text for word in (where.text or "").casefold().split())
        and where.has_attachment in (None, bool(message["attachments"]))
        and where.unread in (None, message["unread"])
    )
