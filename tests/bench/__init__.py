"""Benchmarks: figures with ratios against a floor or a limit from the same run. No part of the tests."""
