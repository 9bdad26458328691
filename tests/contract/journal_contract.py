"""The contract of every journal. A driver's test module subclasses `JournalContract` and provides a `stores` fixture:
an empty store, and a way to open further driver objects on it, as other processes do.
"""

from tests.contract.journal_contract_claims import ClaimsContract
from tests.contract.journal_contract_log import LogContract
from tests.contract.journal_contract_rest import RestContract


class JournalContract(LogContract, ClaimsContract, RestContract):
    """The whole suite."""
