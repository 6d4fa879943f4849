"""Mutation testing: change one expression at a time, and check whether the tests of its package fail."""
