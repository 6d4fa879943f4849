"""How records of events reach their topics, and when offsets are committed."""
