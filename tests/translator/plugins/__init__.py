"""Dialects from other distributions: how they are found, and how their mistakes are contained."""
