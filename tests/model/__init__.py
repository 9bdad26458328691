"""Tests with a real model: `make check-model`."""
