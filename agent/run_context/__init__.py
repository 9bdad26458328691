"""One claimed run: its writer, its model calls and budgets, and the redaction applied to both."""
