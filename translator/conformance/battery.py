"""The properties of a dialect, and a plug-in's scorecard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from translator.conformance import messages
from translator.conformance.cases import Case, read_cases, result_of, write_expected
from translator.conformance.key_changes import key_changes
from translator.conformance.package import Package, read_package
from translator.conformance.row_values import nullable_keys, values_apart
from translator.conformance.score import Failed, NotApplicable, Score, Scorecard
from translator.conformance.trial import Subject, Trial
from translator.errors import ConfigError

PROPERTIES: Mapping[str, Callable[[Subject], None]] = {
    "golden cases": messages.golden_cases,
    "absent, NULL, unavailable": values_apart,
    "nullable keys": nullable_keys,
    "key changes": key_changes,
    "masked copies": messages.masked_copies,
    "hostile messages": messages.hostile_messages,
    "determinism": messages.determinism,
    "no row data": messages.silence,
}
"""The property checks by name, in scorecard order. They raise Failed or NotApplicable."""


def scorecard(folder: Path) -> Scorecard:
    """Test the plug-in in its project folder with the cases in the folder `cases`.

    Raises:
        ConfigError: the folder contains no plug-in or no cases, or a file cannot be read.
    """
    name, found = scores_of(folder)
    return Scorecard(name, [*found])


def scores_of(folder: Path) -> tuple[str, Iterator[Score]]:
    """Return the name of the plug-in in a folder, and its scores. Each score follows as soon as its property has been
    tested.

    Raises:
        ConfigError: see `scorecard`.
    """
    package = read_package(folder)
    return str(package), _scores_of(package, read_cases(folder))


def _scores_of(package: Package, cases: Sequence[Case]) -> Iterator[Score]:
    try:
        plugin = package.load()
        for case in cases:
            Trial(plugin, case)
    except ConfigError as error:
        yield Score("interface", "failed", str(error))
        return
    yield Score("interface", "passed")
    yield from scores(Subject(package, plugin, cases))


def scores(subject: Subject) -> Iterator[Score]:
    """Return a loaded plug-in's scores."""
    return (_score(name, check, subject) for name, check in PROPERTIES.items())


def _score(name: str, check: Callable[[Subject], None], subject: Subject) -> Score:
    try:
        check(subject)
    except Failed as error:
        return Score(name, "failed", str(error))
    except NotApplicable as error:
        return Score(name, "not applicable", str(error))
    return Score(name, "passed")


def write_results(folder: Path) -> list[str]:
    """Write results for all cases without results, and return the names of these cases.

    Raises:
        ConfigError: the plug-in cannot be used, or a file cannot be read.
    """
    plugin = read_package(folder).load()
    written = [case for case in read_cases(folder) if case.expected is None]
    for case in written:
        trial = Trial(plugin, case)
        try:
            results = [result_of(trial.translate(message)) for message in case.messages]
        except Failed as error:
            raise ConfigError(f"nothing was written to {case.file}: {error}") from None
        write_expected(case, results)
    return [case.name for case in written]
