"""Generators of pages: references, schemas of chart values, dashboards, pictures and the documentation site."""
