"""`ProgressFile`: the results of an evaluation as they come, so that an interrupted one goes on where it was.

`stepgate eval` keeps its tasks' results in one; `make eval-bfcl` and `make eval-chat` those of their cases and chats.
"""

import json
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from agent.core.errors import ConfigError
from gateway.features.evaluation.report import ERROR_STATUS, MeasuredResult

ResultT = TypeVar("ResultT", bound=MeasuredResult)


class ProgressFile(Generic[ResultT]):
    """One JSON line for what is evaluated, then one for each result with the name of the `Answerer`."""

    def __init__(self, path: Path, about: dict[str, Any], result_type: type[ResultT]) -> None:
        """Reads the file, or begins it. Raises `ConfigError` for the file of another evaluation."""
        self._path = path
        self._result_type = result_type
        self._results: dict[tuple[str, str], ResultT] = {}
        if path.exists():
            self._read(about)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        self._append({"about": about})

    def find(self, answerer: str, task_id: str) -> ResultT | None:
        """The result of a task that was measured; one whose world failed is tried again."""
        return self._results.get((answerer, task_id))

    def add(self, answerer: str, result: ResultT) -> None:
        """Keeps a result at once."""
        if result.status != ERROR_STATUS:
            self._results[answerer, result.id] = result
            self._append({"answerer": answerer, "result": result.model_dump(mode="json")})

    def _read(self, about: dict[str, Any]) -> None:
        try:
            text = self._path.read_text("utf-8")
            # Not `splitlines`: answers may hold U+2028, at which it splits too.
            lines = text.split("\n")
            head = json.loads(lines[0])["about"]
            for line in filter(None, lines[1:]):
                parsed_line = _parse_line(line)
                if parsed_line is not None:
                    result = self._result_type.model_validate(parsed_line["result"])
                    self._results[parsed_line["answerer"], result.id] = result
        except (OSError, ValueError, LookupError, TypeError, ValidationError) as error:
            raise ConfigError(f"{self._path} is not a file written by --resume of the same command") from error
        if head != about:
            raise ConfigError(f"{self._path} holds results of another evaluation: {head}; name another file")
        if not text.endswith("\n"):
            # The next result must not become part of a line that a killed process began.
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def _append(self, line: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _parse_line(line: str) -> dict[str, Any] | None:
    """A kept result; None for the half line of a process that was killed while it wrote."""
    try:
        record: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return record
