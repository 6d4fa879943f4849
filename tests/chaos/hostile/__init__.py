"""Hostile messages through the whole product, next to tables that must not notice them."""
