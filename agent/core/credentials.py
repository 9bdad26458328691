"""`Credentials`: the secrets that sources of documents are opened with, by name, from one file only its owner may read.

Requests and rooms carry a credential's name, never the secret. The file is read at every use, so that a new key counts
at once. Where a value may stand, `"${NAME}"` takes it from the environment and `{"file": "path"}` from another file.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from agent.core.errors import AgentError
from agent.core.models import JsonObject

GOOGLE_TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
MAX_BYTES = 1_000_000
"""A key is 2 kB; a larger file is the wrong file."""
GUIDE = "docs/connectors.md says how to write one"
_FROM_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class CredentialError(AgentError):
    """Raised when a credential is not there or cannot be read. The message says what to do and holds no secret."""

    code = "ERR_CONNECTOR_AUTH"

    def __init__(self, message: str) -> None:
        super().__init__(message, agent_id="credentials")


def _safe_address(value: str) -> str:
    url = urlsplit(value)
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOOPBACK):
        raise ValueError("must begin with https://, for secrets are sent there")
    return value


TokenUri = Annotated[str, AfterValidator(_safe_address)]
Secret = Annotated[SecretStr, Field(min_length=1)]


class _Credential(BaseModel):
    # Google's own files have more fields than are needed here; and no error may quote what it was given.
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class GoogleServiceAccount(_Credential):
    """A service account by its key. `subject` is the person it acts for, where an administrator has allowed that."""

    type: Literal["google_service_account"]
    client_email: str = Field(min_length=3)
    private_key: Secret
    private_key_id: str | None = None
    token_uri: TokenUri = GOOGLE_TOKEN_URI
    subject: str | None = None


class GoogleOAuth(_Credential):
    """A person's consent, as a refresh token of an OAuth client."""

    type: Literal["google_oauth"]
    client_id: str = Field(min_length=1)
    client_secret: Secret
    refresh_token: Secret
    token_uri: TokenUri = GOOGLE_TOKEN_URI


class Bearer(_Credential):
    """A token that is sent as it is, and that nobody here can renew."""

    type: Literal["bearer"]
    token: Secret


class DocumentPassword(_Credential):
    """What opens protected documents of a source."""

    type: Literal["document_password"]
    password: Secret


SourceCredential = GoogleServiceAccount | GoogleOAuth | Bearer
Credential = SourceCredential | DocumentPassword
_TYPES: dict[str, type[GoogleServiceAccount] | type[GoogleOAuth] | type[Bearer] | type[DocumentPassword]] = {
    "google_service_account": GoogleServiceAccount,
    "google_oauth": GoogleOAuth,
    "bearer": Bearer,
    "document_password": DocumentPassword,
}


class Credentials:
    """The credentials of one file. Reading is quick but blocks: call from a thread."""

    def __init__(self, path: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._path = path
        self._environment = environment

    def get(self, name: str) -> Credential:
        """The credential of this name. `CredentialError` when there is none, or it cannot be used."""
        entries = self._entries()
        if name not in entries:
            there = f"there are {', '.join(sorted(entries))}" if entries else f"it is empty or missing; {GUIDE}"
            raise CredentialError(f"there is no credential {name!r} in {self._path}; {there}")
        return self._read(name, entries[name])

    def password(self, name: str) -> SecretStr:
        """The password of this name. `CredentialError` when there is none, or it is no password."""
        found = self.get(name)
        if not isinstance(found, DocumentPassword):
            raise CredentialError(f"the credential {name!r} in {self._path} is no document_password; {GUIDE}")
        return found.password

    def names(self) -> tuple[str, ...]:
        """The names in the file, sorted; none where there is no file. `CredentialError` when it cannot be read."""
        return tuple(sorted(self._entries()))

    def secrets(self) -> tuple[str, ...]:
        """Every secret value of the file, for whoever takes them out of logs and answers.

        An entry that cannot be used has none: nothing of it ever leaves the file. `CredentialError` as for `names`."""
        found: list[str] = []
        for name, entry in self._entries().items():
            try:
                credential = self._read(name, entry)
            except CredentialError:
                continue
            values = (getattr(credential, field) for field in type(credential).model_fields)
            found += [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        return tuple(dict.fromkeys(found))

    def _entries(self) -> JsonObject:
        try:
            text = _private_text(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CredentialError(f"{self._path} cannot be read: {error.strerror}") from error
        entries = _parsed(text, f"the credentials file {self._path}")
        if not isinstance(entries, dict):
            raise CredentialError(f"the credentials file {self._path} must be one JSON object; {GUIDE}")
        return entries

    def _read(self, name: str, entry: object) -> Credential:
        where = f"the credential {name!r} in {self._path}"
        if not isinstance(entry, dict):
            raise CredentialError(f"{where} must be a JSON object with a type; {GUIDE}")
        kind = _TYPES.get(str(entry.get("type")))
        if kind is None:
            raise CredentialError(f"{where} must have a type, one of {', '.join(_TYPES)}; {GUIDE}")
        values = {field: self._value(value, f"{where}, {field}") for field, value in entry.items()}
        if "key" in values and kind is GoogleServiceAccount:
            values = {**_google_key(values.pop("key"), f"{where}, key"), **values}
        try:
            return kind.model_validate(values)
        except ValidationError as error:
            faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
            told = "; ".join(faults)
        raise CredentialError(f"{where} is not complete: {told}; {GUIDE}")

    def _value(self, value: object, where: str) -> object:
        """A value as it stands, from the environment, or from a file (a path beside the credentials file)."""
        if isinstance(value, dict) and value.keys() == {"file"}:
            path = self._path.parent / Path(str(value["file"])).expanduser()
            try:
                return _private_text(path).strip()
            except OSError as error:
                raise CredentialError(f"{where}: {path} cannot be read: {error.strerror}") from error
        named = _FROM_ENVIRONMENT.fullmatch(value) if isinstance(value, str) else None
        if named is None:
            return value
        if not self._environment.get(named[1]):
            raise CredentialError(f"{where}: the environment variable {named[1]} is not set")
        return self._environment[named[1]]


def password_in(path: Path) -> SecretStr:
    """The password a file holds, without the line end. `CredentialError` for a file that others may read or that cannot
    be read."""
    try:
        text = _private_text(path.expanduser()).rstrip("\r\n")
    except OSError as error:
        raise CredentialError(f"{path} cannot be read: {error.strerror}") from error
    if not text:
        raise CredentialError(f"{path} is empty; it should hold the password")
    return SecretStr(text)


def _google_key(key: object, where: str) -> JsonObject:
    """What Google's own key file says, whose `type` is another word than ours."""
    found = _parsed(key, where) if isinstance(key, str) else key
    if not isinstance(found, dict) or found.get("type") != "service_account":
        raise CredentialError(f"{where} is no service account key: take the JSON file that Google made")
    return {field: value for field, value in found.items() if field != "type"}


def _parsed(text: str, where: str) -> object:
    """JSON. Neither the error nor its cause has the text, which is secret: hence the raise outside of `except`."""
    try:
        value: object = json.loads(text)
    except RecursionError:
        told = "it is nested too deep"
    except json.JSONDecodeError as error:
        told = f"{error.msg} in line {error.lineno}, column {error.colno}"
    else:
        return value
    raise CredentialError(f"{where} is no JSON: {told}")


def _private_text(path: Path) -> str:
    """The text of a file that nobody but its owner may read; mode and kind are those of the opened file itself.

    `OSError` when it cannot be opened, `CredentialError` for what is wrong with it."""
    # Without O_NONBLOCK a pipe would keep us waiting for its writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise CredentialError(f"{path} is no file")
        if os.name == "posix" and mode & 0o077:
            shown = f"{stat.S_IMODE(mode):o}"
            raise CredentialError(f"others may read or change {path} (its mode is {shown}): chmod 600 {path}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise CredentialError(f"{path} is larger than {MAX_BYTES} bytes; it can be no file of credentials")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
    raise CredentialError(f"{path} is not UTF-8: see byte {at}")
