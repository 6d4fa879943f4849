"""The same work, as a Quix Streams application."""

from __future__ import annotations

import sys
from typing import Any

from plain_translation import load_job, translation
from quixstreams import Application
from quixstreams.models import BytesSerializer


class _SecondOfPair(BytesSerializer):  # type: ignore[misc]
    """Serializes a pair of key and event to the event."""

    def __call__(self, value: Any, ctx: Any) -> Any:
        return value[1]


def main() -> None:
    """Run until stopped."""
    job = load_job(sys.argv[1])
    translate = translation(job)
    app = Application(
        broker_address=job["bootstrap"],
        consumer_group=job["group"],
        auto_offset_reset="earliest",
        loglevel="WARNING",
        commit_interval=1.0,
        producer_extra_config=job["producer"],
        consumer_extra_config={"max.partition.fetch.bytes": 4_194_304},
        auto_create_topics=False,
        use_changelog_topics=False,
    )
    frame = app.dataframe(app.topic(job["raw"], value_deserializer="bytes"))
    frame = frame.apply(lambda value: list(translate(value)), expand=True)
    output = app.topic(job["output"], value_serializer=_SecondOfPair(), key_serializer="str")
    frame.to_topic(output, key=lambda value: value[0])
    app.run()


if __name__ == "__main__":
    main()
