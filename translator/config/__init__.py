"""The configuration as types: settings, their sections, and the rules within each section."""
