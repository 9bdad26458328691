"""Tests of the tailor: pure, without a store or a model."""
