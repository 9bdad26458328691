"""Which process does what: the port `Dispatcher`, its local driver, and its driver on a queue in PostgreSQL."""
