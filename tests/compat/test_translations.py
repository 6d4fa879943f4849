"""This release makes the same events as earlier releases, except for the differences that translator/upgrades.yaml
announces. `translator upgrade-check` uses the same comparison.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.compat.translations import read, recorded_releases, results
from translator.operations.release_notes import releases_after
from translator.operations.rewritten import Written, differences


@pytest.mark.parametrize("release", recorded_releases())
def test_every_difference_is_announced(release: str) -> None:
    announced = {
        (dialect, name)
        for notes in releases_after(release)
        for change in notes.changes
        for dialect in change.dialects
        for name in change.fields
    }
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for recorded in read(release):
        conversation = recorded.conversation
        for number, (before, now) in enumerate(zip(recorded.results, results(conversation), strict=True)):
            events = {n: [event] for n, event in before.events.items()}
            letters = {before.letter} if before.letter is not None else set()
            for name in differences(Written(events, letters), now) or ():
                found[conversation.dialect, name].append(f"{conversation.name}@{number}")
    assert {} == {difference: places for difference, places in found.items() if difference not in announced}
