"""The contestants: the translator, and peers that process the same messages."""

from __future__ import annotations

from collections.abc import Mapping

from bench.contestants.base import Contestant
from bench.contestants.flink import FlinkSql
from bench.contestants.peers import BareLoop, Bytewax, PlainFaust, QuixStreams
from bench.contestants.service import TranslatorService

CONTESTANTS: Mapping[str, Contestant] = {
    contestant.name: contestant
    for contestant in (
        TranslatorService("translator", "at_least_once"),
        TranslatorService("translator, exactly once", "exactly_once"),
        TranslatorService("translator, with a Debezium projection", "at_least_once", "debezium"),
        TranslatorService("translator, with a JSON projection", "at_least_once", "json"),
        TranslatorService("translator, with an upsert projection", "at_least_once", "upsert"),
        TranslatorService("translator, without its native path", "at_least_once", native=False),
        BareLoop(),
        FlinkSql(),
        Bytewax(),
        QuixStreams(),
        PlainFaust(),
    )
}
"""The contestants, keyed by their names in reports."""
