"""Stores: the journal and its drivers, tables and migrations, vectors, keys, audit, values with a time to live.

Begin with `journal.py` `Journal`, `sql.py` `SqlClient`, `audit.py` `AuditLog`, `api_keys.py` `KeyStore` and `usage.py`
`UsageLedger`.
"""
