"""The schema that every table of this package belongs to."""

from sqlalchemy import BigInteger, Integer, MetaData

metadata = MetaData()

# SQLite increments only INTEGER primary keys automatically.
COUNTER = BigInteger().with_variant(Integer, "sqlite")
