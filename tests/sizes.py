"""The number of examples of the property tests, as profiles selected with `--hypothesis-profile=NAME`."""

import math

from hypothesis import HealthCheck, settings

PROFILES = {"quick": 25, "ci": 100, "long": 2_000}
"""Number of examples for a property of weight 1. The default is `quick`; `.ci/run` selects `ci`."""

LEAST = 5


def register() -> None:
    """Register the profiles with hypothesis and load the default."""
    for name, count in PROFILES.items():
        # Tests have no deadlines. On a busy machine, running or generating an example can be slow; benchmarks measure
        # time.
        settings.register_profile(
            name, max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
        )
    settings.load_profile("quick")


def count(weight: float) -> int:
    """Return how often a test repeats its work: `weight` times the number of examples of the profile."""
    return max(1, math.ceil(settings.default.max_examples * weight))


def examples(weight: float) -> settings:
    """Decorate a property that needs `weight` times the usual examples, for a wide space or a slow test."""
    return settings(max_examples=max(LEAST, math.ceil(settings.default.max_examples * weight)))
