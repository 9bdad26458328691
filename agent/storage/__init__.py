"""Stores: the journal and its drivers, tables and migrations, vectors, keys, audit, values with a time to live."""
