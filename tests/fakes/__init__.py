"""Fakes: programs and values that stand in for the outside world in tests."""
