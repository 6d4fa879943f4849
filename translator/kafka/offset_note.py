"""The format in the metadata of a committed offset: the last part, after the parts of the program that commits."""

from __future__ import annotations

import re

from cdc_core.state_format import FORMAT, check_format

END = ";"
"""The end of each part. Because librdkafka returns metadata without a terminator, any characters may follow the last
part. Earlier versions used a zero byte, which librdkafka cannot write when it commits in transactions.
"""

_FORMAT = re.compile(r"format=([0-9]+);")


def noted(part: str) -> str:
    """Return an offset's metadata: the committing program's part, followed by the format."""
    return f"{part}{END}format={FORMAT}{END}"


def check_note(note: str, where: str) -> None:
    """Raise an error unless this release can read an offset's metadata.

    Raises:
        FatalError: a later release committed the offset.
    """
    _, _, rest = note.partition(END)
    found = _FORMAT.match(rest)
    check_format(found and found[1], where)
