"""Errors of fetching and parsing. Parser errors cross the worker's pipe by their code."""

from pydantic import JsonValue

from agent.core.errors import AgentError


class IngestError(AgentError):
    """The base class of what keeps one document from being read. The others of its source are not affected."""

    code = "ERR_CONNECTOR_FAILED"


class ConnectorError(IngestError):
    """Base of source errors. A document that cannot be fetched is reported and stops nothing else."""

    code = "ERR_CONNECTOR_FAILED"

    def __init__(self, message: str, **details: JsonValue) -> None:
        super().__init__(message, agent_id="connector")
        self.details = details


class ConnectorAuthError(ConnectorError):
    """Raised when the source refuses us (401, 403), or a credential is missing or expired."""

    code = "ERR_CONNECTOR_AUTH"


class ConnectorNotFoundError(ConnectorError):
    """Raised when nothing is there (404, 410, no such file)."""

    code = "ERR_CONNECTOR_NOT_FOUND"


class ConnectorRefusedError(ConnectorError):
    """Raised for what the source asks us not to read (robots.txt, noindex) and for addresses outside the source (a
    redirect to another site, an internal address). Retrying changes nothing."""

    code = "ERR_CONNECTOR_REFUSED"


class ConnectorTooLargeError(ConnectorError):
    """Raised when a fetch limit is reached: the bytes of a document, the pages or seconds of a walk."""

    code = "ERR_TOO_LARGE"


class ParserError(IngestError):
    """Base of the failures of one file. Other files are never affected."""

    code = "ERR_PARSER_CORRUPT"

    def __init__(self, message: str, **details: JsonValue) -> None:
        super().__init__(message, agent_id="parser")
        self.details = details


class ParserEncryptedError(ParserError):
    """Raised for a file that needs a password. Ask for it, or skip the file."""

    code = "ERR_PARSER_ENCRYPTED"


class ParserUnsupportedError(ParserError):
    """Raised when the bytes do not match the declared type (`details["found"]` says what they look like), and for types
    that no parser reads."""

    code = "ERR_PARSER_UNSUPPORTED"


class ParserCorruptError(ParserError):
    """Raised for a damaged or unsafe file: truncated, zip bomb, entity bomb, nested too deep, too much memory, parser
    crash. `details["reason"]` names the cause."""

    code = "ERR_PARSER_CORRUPT"


class ParserEmptyError(ParserError):
    """Raised for a file without text; `details["reason"]` is `scanned` if it holds only pictures of text."""

    code = "ERR_PARSER_EMPTY"


class ParserTimeoutError(ParserError):
    """Raised when a file took too long; its worker was killed."""

    code = "ERR_TIMEOUT"


class ParserTooLargeError(ParserError):
    """Raised when the file, or its text, is larger than allowed."""

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


def build_parser_error(code: str, message: str, details: dict[str, JsonValue]) -> ParserError:
    """The error for a code that a worker sent; an unknown code is a damaged file."""
    return _BY_CODE.get(code, ParserCorruptError)(message, **details)
