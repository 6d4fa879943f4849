"""What operators see of errors from libraries and servers."""

from __future__ import annotations

import pytest

from spark_sink.spark.foreign_errors import reason


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ""),
        ("\n one\n two", "one"),
        ("S3 error\n  ↳ first\n   ↳ last\n more", "S3 error: last"),
        (
            "S3 error\n  ↳ 403\n <Error><Code>NoSuchBucket</Code> <Message>None.</Message><Key>k</Key>",
            "S3 error: NoSuchBucket: None",
        ),
    ],
)
def test_one_line(text: str, told: str) -> None:
    """The report has the first line and the last cause, and for S3 the code and message without the request."""
    assert told == reason(OSError(text))
