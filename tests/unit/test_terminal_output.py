"""Nothing that a model, a page or a tool wrote is obeyed by a terminal, whether a command prints it or rich does."""

import os
import pty
import subprocess
import sys

import pytest

from gateway.cli.terminal_output import remove_terminal_controls

EVIL = "a\x1b[2Jb\x1b]52;c;ZXZpbA==\x07c\x9b31md\x07e\x08f\rg\u202eh\u2066i\x7fj"
PROGRAM = """
import sys
from gateway.cli.closed_pipes import tolerate_closed_pipes
tolerate_closed_pipes()
evil = {evil!r}
from gateway.cli import lazy_rich
print("plain", evil)
print("error", evil, file=sys.stderr)
lazy_rich.print_rows(["name", "text"], [["row", evil]])
lazy_rich.Console().print(lazy_rich.Markdown("**bold** " + evil))
with lazy_rich.show_progress("reading " + evil) as report:
    report("file", 1, 2)
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (EVIL, "ab]52;c;ZXZpbA==c31mdefghij"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        (
            "family 👨\u200d👩\u200d👧, नमस्\u200dते, e\u0301, \u200fשמש",
            "family 👨\u200d👩\u200d👧, नमस्\u200dते, e\u0301, \u200fשמש",
        ),
        ("x = 'a\u202e\u2066# check\u2069 \u2066'", "x = 'a# check '"),
        ("\x1b[31", "[31"),
    ],
)
def test_controls_go_and_text_stays(text: str, shown: str) -> None:
    assert remove_terminal_controls(text) == shown


def run_on_terminal(program: str) -> str:
    """What a terminal gets from a program whose stdout and stderr it is."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the program has ended
                break
            parts.append(part)
            if not part:
                break
        process.wait(20)
    os.close(ours)
    return b"".join(parts).decode()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_command_prints_text_without_controls_and_keeps_its_own_colours(is_terminal: bool) -> None:
    program = PROGRAM.format(evil=EVIL)
    if is_terminal:
        seen = run_on_terminal(program)
        assert "\x1b[1m" in seen, "rich's own styles stay"
    else:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60)
        seen = done.stdout + done.stderr
        assert "\x1b" not in seen
    assert seen.count("ab]52;c;ZXZpbA==c31mdef") >= 4
    for sign in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\x08", "\u202e", "\u2066", "\x7f"):
        assert sign not in seen
