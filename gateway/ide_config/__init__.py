"""Stepgate's entry in the configuration files of IDEs and assistants, for `stepgate mcp install`."""

from gateway.ide_config.clients import CLIENTS, Entry, IdeClient, find_config_file
from gateway.ide_config.install import InstallResult, install_entry
from gateway.ide_config.json_edit import MalformedJsonError

__all__ = ["CLIENTS", "Entry", "IdeClient", "InstallResult", "MalformedJsonError", "find_config_file", "install_entry"]
