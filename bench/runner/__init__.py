"""Runs contestants against a real broker, warm and in turns."""
