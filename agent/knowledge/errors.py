"""What fetching and reading a document can end in. Parsers' errors are carried over the worker's pipe by their code."""

from pydantic import JsonValue

from agent.core.errors import AgentError


class ConnectorError(AgentError):
    """The root of what can go wrong at a source. A document that cannot be had stops nothing; the report has it."""

    code = "ERR_CONNECTOR_FAILED"

    def __init__(self, message: str, **details: JsonValue) -> None:
        super().__init__(message, agent_id="connector")
        self.details = details


class ConnectorAuthError(ConnectorError):
    """Raised when the source refuses us (401, 403), or a credential is missing or no longer valid."""

    code = "ERR_CONNECTOR_AUTH"


class ConnectorNotFoundError(ConnectorError):
    """Raised when there is nothing there (404, 410, no such file)."""

    code = "ERR_CONNECTOR_NOT_FOUND"


class ConnectorRefusedError(ConnectorError):
    """Raised for what the source does not want us to read (robots.txt, noindex), and for what lies outside of the
    source that was given (a redirect to another site, an address of the inside). Trying again changes nothing."""

    code = "ERR_CONNECTOR_REFUSED"


class ConnectorTooLargeError(ConnectorError):
    """Raised where a limit on what is fetched is reached: the bytes of one document, the pages or seconds of a walk."""

    code = "ERR_TOO_LARGE"


class ParserError(AgentError):
    """The root of every failure of one file. The caller and the other files are never touched by it."""

    code = "ERR_PARSER_CORRUPT"

    def __init__(self, message: str, **details: JsonValue) -> None:
        super().__init__(message, agent_id="parser")
        self.details = details


class ParserEncryptedError(ParserError):
    """Raised for a file that opens with a password only. Ask for it, or skip the file."""

    code = "ERR_PARSER_ENCRYPTED"


class ParserUnsupportedError(ParserError):
    """Raised when the bytes are no file of the type they were given as (`details["found"]` says what they look like),
    and for types nobody here reads. Tell the user; skip the file."""

    code = "ERR_PARSER_UNSUPPORTED"


class ParserCorruptError(ParserError):
    """Raised for a file that is damaged or unsafe to unpack: cut short, a zip bomb, an entity bomb, a page nested too
    deep, more memory than allowed, a parser that died of it. `details["reason"]` names which."""

    code = "ERR_PARSER_CORRUPT"


class ParserEmptyError(ParserError):
    """Raised for a file without any text; `details["reason"]` is `scanned` when it holds pictures of text only."""

    code = "ERR_PARSER_EMPTY"


class ParserTimeoutError(ParserError):
    """Raised when a file took longer than allowed; its worker was killed."""

    code = "ERR_TIMEOUT"


class ParserTooLargeError(ParserError):
    """Raised when the file, or the text read from it, is larger than allowed."""

    code = "ERR_TOO_LARGE"


_BY_CODE: dict[str, type[ParserError]] = {
    error.code: error
    for error in (
        ParserEncryptedError,
        ParserUnsupportedError,
        ParserCorruptError,
        ParserEmptyError,
        ParserTimeoutError,
        ParserTooLargeError,
    )
}


def parser_error(code: str, message: str, details: dict[str, JsonValue]) -> ParserError:
    """The error that a worker wrote down by its code; an unknown code counts as a damaged file."""
    return _BY_CODE.get(code, ParserCorruptError)(message, **details)
