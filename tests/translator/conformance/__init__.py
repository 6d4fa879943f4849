"""The kit for dialect plug-ins: a new plug-in, the battery, and plug-ins that lack a property."""
