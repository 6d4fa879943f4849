"""Deliveries, which write records to their topics and decide when offsets can be committed."""
