"""The MCP servers of the practice set, one module each."""

from collections.abc import Mapping

from gateway.features.evaluation.sets.practice.bank import build_bank
from gateway.features.evaluation.sets.practice.code import build_code
from gateway.features.evaluation.sets.practice.kitchen import build_kitchen
from gateway.features.evaluation.sets.practice.mailbox import build_mailbox
from gateway.features.evaluation.state_file import BuildServer

SERVERS: Mapping[str, BuildServer] = {
    "bank": build_bank,
    "mailbox": build_mailbox,
    "code": build_code,
    "kitchen": build_kitchen,
}
"""The servers by name. A tool of `bank` is called `bank__get_accounts` in the gateway."""
