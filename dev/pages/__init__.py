"""Generate pages: references, schemas for chart values, dashboards, pictures and the documentation site."""
