"""`SecretNames`: which secrets this gateway has by name, and whether they are configured. Never a value.

Credentials belong to the operator. One named `OWNER/NAME` may be used by the rooms of that owner too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.core.models import LOCAL_OWNER, Room
from agent.storage.credentials import CredentialError, Credentials, may_use_credential

SecretKind = Literal["setting", "credential"]


@dataclass(frozen=True, slots=True)
class SecretName:
    """A secret. `problem` says why it cannot be used; empty if it can. `used_by` are the rooms that name it."""

    name: str
    kind: SecretKind
    is_configured: bool
    problem: str = ""
    used_by: tuple[str, ...] = ()


class SecretNames:
    """The secrets among the settings and in the credentials file. `settings` are their names, and whether they are set.

    Reading blocks for a short time: call it in a thread.
    """

    def __init__(
        self, settings: Sequence[tuple[str, bool]], credentials: Credentials, list_rooms: Callable[[], Iterable[Room]]
    ) -> None:
        self._settings, self._credentials, self._list_rooms = settings, credentials, list_rooms

    def list_secrets(self, owner: str | None) -> list[SecretName]:
        """The names that this owner may use, in order of kind and name; all of them for None.

        Raises `CredentialError` if the file cannot be read.
        """
        is_operator = owner in (None, LOCAL_OWNER)
        settings = [SecretName(name, "setting", is_set) for name, is_set in self._settings] if is_operator else []
        return [*settings, *self._list_credentials(owner)]

    def _list_credentials(self, owner: str | None) -> Iterator[SecretName]:
        used: dict[str, list[str]] = {}
        for room in self._list_rooms():
            for server in room.mcp_servers.values():
                for name in server.list_credentials():
                    used.setdefault(name, []).append(room.id)
        stored = self._credentials.list_names()
        for name in sorted({*stored, *used}):
            if owner is None or may_use_credential(owner, name):
                problem = self._find_problem(name, is_operator=owner in (None, LOCAL_OWNER)) if name in stored else ""
                yield SecretName(
                    name, "credential", name in stored and not problem, problem, tuple(sorted(set(used.get(name, ()))))
                )

    def _find_problem(self, name: str, *, is_operator: bool) -> str:
        """The reason why a credential cannot be used. The message names the file, which is the operator's matter."""
        try:
            self._credentials.get(name)
        except CredentialError as error:
            return error.message if is_operator else "it cannot be used; the operator sees why"
        return ""
