"""The configuration as types: settings, their sections, and the rules that sections contain."""
