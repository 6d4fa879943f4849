"""The same work, as a Faust agent written as in Faust's documentation, but with larger buffers."""

from __future__ import annotations

import os
import sys
from typing import Any

import faust
from plain_translation import load_job, translation


def main() -> None:
    """Run until stopped."""
    job = load_job(sys.argv[1])
    translate = translation(job)
    app = faust.App(
        job["group"],
        broker=f"kafka://{job['bootstrap']}",
        datadir=os.path.join(os.getcwd(), "faust"),  # noqa: PTH109, PTH118 - Faust takes text
        web_enabled=False,
        topic_disable_leader=True,
        stream_buffer_maxsize=4096,
        stream_wait_empty=False,
        producer_linger=0.02,
        producer_max_batch_size=262_144,
        producer_compression_type="lz4",
        consumer_auto_offset_reset="earliest",
    )
    raw = app.topic(job["raw"], key_serializer="raw", value_serializer="raw")
    output = app.topic(job["output"], key_serializer="raw", value_serializer="raw")

    @app.agent(raw)
    async def pipeline(stream: Any) -> None:
        async for value in stream:
            for key, event in translate(value):
                await output.send(key=key.encode(), value=event)

    faust.Worker(app, loglevel="warning").execute_from_commandline()


if __name__ == "__main__":
    main()
