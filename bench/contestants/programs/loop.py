"""The bare loop consumes, translates without checking or typing anything, produces, and commits once a second.

It shows the maximum speed of a Python program with this client. After a crash, it repeats messages. It does not report
invalid ones.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, Producer
from plain_translation import load_job, translation

_COMMIT_SECONDS = 1.0


def main() -> None:
    """Run until stopped."""
    job = load_job(sys.argv[1])
    translate = translation(job)
    consumer = Consumer(
        {
            "bootstrap.servers": job["bootstrap"],
            "group.id": job["group"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.partition.fetch.bytes": 4_194_304,
            "queued.max.messages.kbytes": 65_536,
        }
    )
    producer = Producer({"bootstrap.servers": job["bootstrap"], **job["producer"]})
    consumer.subscribe([job["raw"]])
    committed = time.monotonic()
    while True:
        for message in consumer.consume(2000, 0.1):
            value = message.value()
            if value is None:
                continue
            for key, event in translate(value):
                while True:
                    try:
                        producer.produce(job["output"], event, key, partition=message.partition() or 0)
                        break
                    except BufferError:
                        producer.poll(0.1)
        producer.poll(0)
        if time.monotonic() - committed > _COMMIT_SECONDS:
            producer.flush()
            consumer.commit(asynchronous=True)
            committed = time.monotonic()


if __name__ == "__main__":
    main()
