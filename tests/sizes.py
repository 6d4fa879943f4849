"""How many examples the property tests try: profiles by name, chosen with `--hypothesis-profile=NAME`."""

import math

from hypothesis import HealthCheck, settings

PROFILES = {"quick": 25, "ci": 100, "long": 2_000}
"""The examples of a property of weight 1. `quick` is the default; `.ci/run` chooses `ci`."""

LEAST = 5


def register() -> None:
    """Make the profiles known to hypothesis and load the default."""
    for name, count in PROFILES.items():
        # A timing is a benchmark, never a test: on a busy machine an example may take long, and finding one, too.
        settings.register_profile(
            name, max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
        )
    settings.load_profile("quick")


def count(weight: float) -> int:
    """Return how often a test does what it repeats: `weight` times the examples of the profile."""
    return max(1, math.ceil(settings.default.max_examples * weight))


def examples(weight: float) -> settings:
    """Decorate a property that needs `weight` times the usual examples: more of a wide space, fewer of a slow one."""
    return settings(max_examples=max(LEAST, math.ceil(settings.default.max_examples * weight)))
