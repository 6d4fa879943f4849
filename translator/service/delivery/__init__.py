"""Deliveries: they bring records to their topics and say when offsets may be committed."""
