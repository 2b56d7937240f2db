"""Benchmarks: programs that measure, apart from the tests."""
