"""The same work, as a Bytewax dataflow. It commits no offsets, so it guarantees less than the other programs."""

from __future__ import annotations

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from plain_translation import load_job, translation

_job = load_job(os.environ["BENCH_JOB"])
_translate = translation(_job)
_brokers = [_job["bootstrap"]]

flow = Dataflow("bench")
_source = KafkaSource(
    _brokers, [_job["raw"]], tail=True, batch_size=1000, add_config={"max.partition.fetch.bytes": "4194304"}
)
_messages = op.input("in", flow, _source)
_events = op.flat_map(
    "translate", _messages, lambda m: [KafkaSinkMessage(key.encode(), event) for key, event in _translate(m.value)]
)
op.output(
    "out",
    _events,
    KafkaSink(_brokers, _job["output"], add_config={name: str(value) for name, value in _job["producer"].items()}),
)
