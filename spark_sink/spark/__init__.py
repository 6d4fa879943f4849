"""Spark itself: its session, the checkpoint of its query, its workers, and what its failures mean."""
