"""`DoctorFinding`: one line of the report of `stepgate doctor`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line of the report. `remedy` says what to do if it is not ok; `fatal` sets exit code 1."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    fatal: bool = True
