"""Read a source table's changes from the canonical topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

from cdc_core.kafka_settings import librdkafka_options
from cdc_core.reader import Change, ReadError, decode
from cdc_core.table_id import TableId
from spark_sink.config.settings import Settings
from spark_sink.errors import ConfigError
from spark_sink.events.topic_records import read_range
from spark_sink.operations.verify import change_of
from spark_sink.schema.catalog import SchemaReader


class AppliedTopic:
    """The canonical topic, as far as the sink has read it."""

    def __init__(self, loaded: Settings) -> None:
        starting = loaded.input.starting_offsets
        if starting == "latest":
            raise ConfigError("input.starting_offsets is latest, so the topic has events that the sink did not read")
        self._options = librdkafka_options(loaded.kafka)
        self._name = loaded.input.topic
        with closing(SchemaReader(self._options, loaded.input.schemas)) as reader:
            reader.reach()
            available = reader.begins(self._name)
        wanted = {one: starting.get(one, 0) if isinstance(starting, dict) else 0 for one in available}
        self._begins = {one: max(offset, wanted[one]) for one, offset in available.items()}
        self.is_complete = self._begins == wanted
        self.unreadable = 0

    def changes(
        self, source: TableId, ends: Mapping[int, int], kept: Callable[[Change, int, int], Change | None]
    ) -> Iterator[Change]:
        """Yield a source table's changes. `kept` returns the part of a change that has to be applied. Its arguments are
        the change, its partition and its offset.
        """
        for partition, offset, value in read_range(self._options, self._name, self._begins, ends):
            try:
                event = decode(value)
                if (event.source, event.db, event.schema, event.table) != source:
                    continue
                change = kept(change_of(event), partition, offset)
                if change is not None:
                    yield change
            except (ReadError, ValueError):
                self.unreadable += 1
