"""The port that is bound: its default, and what is said about one that is taken."""

import socket
from pathlib import Path
from typing import Any

import pytest

from agent.core.settings import Settings
from gateway.cli.bind_address import PortError, bind_socket


def make_settings(**values: Any) -> Settings:
    return Settings(_env_file=None, data_dir=Path("data"), **values)


def test_a_taken_port_names_a_command_with_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortError, match=r"Otherwise: stepgate serve --port \d+$") as caught:
            bind_socket(make_settings(port=port))
    named = int(str(caught.value.message).rsplit(" ", 1)[1])
    assert port < named <= port + 20
    with bind_socket(make_settings(port=named)) as bound:
        assert bound.getsockname() == ("127.0.0.1", named)
