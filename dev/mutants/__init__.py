"""Mutation testing: change one expression at a time, and see whether the tests of its room notice."""
