"""Measure projections with delivery in memory, on both paths: `python -m bench.steps.projections`.

The pipeline comes from `bench.steps.pipeline`. Schema ids are cached, as they are after the first message of a table.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.generators import MessageStream, generate
from bench.generators.history import StreamSpec
from bench.measure import machine, table
from bench.steps.pipeline import COLUMNS, MESSAGES, ROUNDS, MemoryPipeline
from translator.codecs import Codec, Framing, build
from translator.codecs.registered import TableSchemas

FORMAT = "canal"


def _id_of(subject: str, text: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{subject} {text}".encode()).digest()[:4], "big") >> 1


_FRAMING = Framing(tables=TableSchemas(_id_of, lambda event: "bench"))


def _codec(name: str, **options: Any) -> Codec:
    return build(name, options, _FRAMING)


def projections() -> Mapping[str, Sequence[Codec]]:
    """Return the codecs that are added to the canonical topic, keyed by their line's label."""
    return {
        "none": (),
        "debezium": (_codec("debezium"),),
        "debezium, schema_block": (_codec("debezium", schema_block=True),),
        "debezium_avro": (_codec("debezium_avro"),),
        "upsert, key: columns": (_codec("upsert", key="columns"),),
        "json": (_codec("json"),),
        "json, key_change: two_events": (_codec("json", key_change="two_events"),),
    }


def report(messages: int, rounds: int) -> str:
    """Return a table with one line per projection. It shows microseconds of CPU time per message, as the minimum of
    several alternating rounds.
    """
    stream = generate(FORMAT, StreamSpec(messages, COLUMNS))
    pipelines = {
        (name, native): MemoryPipeline(stream, codecs, native=native)
        for name, codecs in projections().items()
        for native in (True, False)
    }
    best = dict.fromkeys(pipelines, float("inf"))
    for turn in range(rounds + 1):
        for of in pipelines if turn % 2 == 0 else reversed(tuple(pipelines)):
            cost = _cost(pipelines[of], stream)
            if turn:  # the first round warms up
                best[of] = min(best[of], cost)
    taken = {of: sum(account.native.get("taken", 0) for account in one.accounts) for of, one in pipelines.items()}
    rows = [
        [name, f"{best[name, True]:.1f}", "native" if taken[name, True] else "plain", f"{best[name, False]:.1f}"]
        for name in projections()
    ]
    return table(("projection", "as set up", "way", "native: off"), rows)


def _cost(pipeline: MemoryPipeline, stream: MessageStream) -> float:
    batches = pipeline.batches(stream.messages)
    start = time.process_time()
    asyncio.run(pipeline.process(batches))
    assert not any(account.dead or account.refused for account in pipeline.accounts)
    return (time.process_time() - start) * 1e6 / len(stream.messages)


def main() -> None:
    """Measure and print the results."""
    print(machine("msgspec"))
    print(f"\n{FORMAT}: changes of {COLUMNS} columns, with delivery in memory. Microseconds per message.\n")
    print(report(MESSAGES, ROUNDS))


if __name__ == "__main__":
    main()
