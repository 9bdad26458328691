"""One claimed run: its writer, its model calls and budgets, and the redaction applied to both.

Begin with `run.py` `Run`, `model_calls.py` `MeteredModels`, `calls.py` `CallSite`, `outputs.py` `load_output` and
`extensions.py` `Extension`, by which features join.
"""
