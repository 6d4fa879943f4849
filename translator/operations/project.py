"""Fill a projection with the history from the canonical topic, in the projection's format.

Events keep their order within each raw partition. Each record is exactly what the service would have written. Every
record in the projection must come from this command. If the history were appended after records from the service, rows
would change in the wrong order. The command therefore begins with an empty projection, resumes where its last run
ended, and rejects anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

import msgspec
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation
from msgspec import Struct

from cdc_core.envelope import ChangeEvent, TableSchema
from cdc_core.reader.decode import decode
from cdc_core.reader.errors import ReadError
from translator.codecs import Codec
from translator.codecs.record import Record, record_size
from translator.codecs.registered import UnregisteredSchema
from translator.config.settings import Projection, Settings
from translator.errors import ConfigError, ErrorCode, FatalError, MessageError, unknown
from translator.kafka import client_config
from translator.kafka.admin import TopicAdmin
from translator.kafka.offset_note import END, check_note, noted
from translator.kafka.offset_ranges import Partitions, Place, Range, places_of
from translator.kafka.partitioner import output_partition
from translator.kafka.producer import RecordProducer, producer_config, write_failure
from translator.kafka.range_progress import RangeProgress
from translator.kafka.retry import retry_until
from translator.kafka.table_topics import TableTopics, limit_of
from translator.resolution.builders import avro_header, build_codecs, ids_of, registered_schemas
from translator.state.state_reader import StateReader

Say: TypeAlias = Callable[[str], None]
Refused: TypeAlias = Callable[[str, MessageError], None]
"""Called with a message's id (without an event number) and the reason why the projection does not contain the message.
"""

Answer = TypeVar("Answer")

_AGAIN = (
    "Remove the projection from the service's configuration, delete the projection's topics, and run this command again"
)

SchemaKey: TypeAlias = tuple[str, str | None, str | None, str | None, str]


class Projected(Struct, frozen=True):
    """The counts and offsets of a run."""

    ranges: Sequence[Range]
    """The offsets of the canonical topic up to which events were read. They were the ends of the partitions when the
    run began.
    """
    counts: Mapping[str, int]
    """Events read, records `written`, and messages `refused`."""


def project(settings: Settings, topic: str, say: Say, on_refused: Refused) -> Projected:
    """Write the events that are in the canonical topic now to a projection. Skip those that an earlier run has written.

    Args:
        topic: the projection's `topic` setting, including a template.

    Raises:
        ConfigError: the projection does not exist, or contains records that are not from this command.
        RetryableError: no broker responded in time.
        FatalError: something could not be read or written, or another program wrote to the projection in the meantime.
    """
    by_topic = {one.topic: one for one in settings.projections}
    if topic not in by_topic:
        raise ConfigError(unknown("projection", topic, by_topic))
    alone = settings.model_copy(update={"projections": (by_topic[topic],)})
    return _Run(alone, by_topic[topic], say, on_refused).run()


class _Run:
    def __init__(self, settings: Settings, projection: Projection, say: Say, on_refused: Refused) -> None:
        self._settings = settings
        self._say = say
        self._on_refused = on_refused
        self._client = client_config.librdkafka(settings.kafka)
        self._topics = TopicAdmin(self._client)
        self._topics.wait_for_broker(settings.timing.broker_wait, say)
        self._registered = registered_schemas(settings)
        codecs = build_codecs(settings, partial(avro_header, settings), ids_of(self._registered))
        self._codec: Codec = codecs[projection.topic]
        self._topics.ensure(settings)
        self._target = _Target(self._topics, settings, projection, say)
        self._progress = RangeProgress(self._client, self._topics, f"{settings.group}.project.{projection.topic}")
        self._counts: Counter[str] = Counter(events=0, written=0, refused=0)
        self._schemas: Mapping[SchemaKey, TableSchema] = {}

    def run(self) -> Projected:
        canonical = self._settings.output.topic
        places = places_of(canonical, self._topics.describe([canonical])[canonical], None)
        partitions = Partitions(self._client, self._progress.group)
        config = producer_config(self._client, self._settings.timing.delivery, [self._target.max_bytes])
        writer = _Writer(RecordProducer.from_config(config))
        try:
            held = self._patiently(self._target.held)
            ranges = self._ranges(partitions, places, held)
            self._schemas = (
                self._read_schemas()
            )  # read after the ends, because schemas are published before events that refer to them
            for wanted in ranges:
                events = (_event(record) for record in partitions.read(wanted) if record.value() is not None)
                self._write(events, writer)
        finally:
            partitions.close()
        writer.flush()
        self._finish(ranges, held)
        return Projected(ranges, self._counts)

    def _ranges(self, partitions: Partitions, places: Sequence[Place], held: int) -> list[Range]:
        """Return the range to read from each partition.

        Raises:
            ConfigError: the projection contains records that no earlier run wrote.
        """
        whole = [partitions.bounds(*place) for place in places]
        begun, note = self._patiently(lambda: self._progress.read(places))
        if held == 0:
            return whole
        check_note(note, f"the progress of projection {self._target.name}")
        if not note.startswith(f"records={held}{END}"):
            raise ConfigError(
                f"projection {self._target.name} already contains records from the service or from an incomplete "
                f"run, and older events would be written after them. {_AGAIN}"
            )
        return [msgspec.structs.replace(one, first=max(one.first, begun.get(one.place, one.first))) for one in whole]

    def _read_schemas(self) -> dict[SchemaKey, TableSchema]:
        name = self._settings.output.schemas_topic
        reader = StateReader(self._client, self._topics.describe([name]))
        values: list[Any] = [record.value() for record in reader.to_end()]
        reader.close()
        schemas = [msgspec.json.decode(value, type=TableSchema) for value in values if value is not None]
        return {(one.source, one.db, one.schema, one.table, one.id): one for one in schemas}

    def _write(self, events: Iterable[ChangeEvent], writer: _Writer) -> None:
        """Write the records of events as the service does: either all of a message's records or none."""
        for message, found in groupby(events, key=lambda event: event.id.rpartition("/")[0]):
            together = [*found]
            self._counts["events"] += len(together)
            try:
                records = [(event, self._records(event)) for event in together]
            except MessageError as error:
                self._counts["refused"] += 1
                self._on_refused(message, error)
                continue
            for event, of_event in records:
                if of_event:
                    writer.write(*self._target.place(event), of_event)
                    self._counts["written"] += len(of_event)

    def _records(self, event: ChangeEvent) -> list[Record]:
        records = self._encoded(event)
        limit = self._target.max_bytes
        largest = max(map(record_size, records), default=0)
        if largest > limit:
            raise MessageError(
                ErrorCode.TOO_LARGE, f"a record has {largest} bytes, but {self._target.name} only allows {limit}"
            )
        return records

    def _encoded(self, event: ChangeEvent) -> list[Record]:
        schema = self._schema(event)
        while True:
            try:
                return self._codec.encode(event, schema)
            except UnregisteredSchema as wanted:
                self._register(wanted)

    def _register(self, wanted: UnregisteredSchema) -> None:
        schemas = self._registered
        if schemas is None:
            raise wanted
        retry_until(
            "schema registry",
            lambda _: schemas.register(wanted.subject, wanted.text),
            self._settings.timing.broker_wait,
            self._say,
        )

    def _schema(self, event: ChangeEvent) -> TableSchema | None:
        if event.schema_id is None:
            return None
        found = self._schemas.get((event.source, event.db, event.schema, event.table, event.schema_id))
        if found is None:
            topic = self._settings.output.schemas_topic
            raise FatalError(f"event {event.id} refers to schema {event.schema_id}, which is not in {topic}")
        return found

    def _finish(self, ranges: Sequence[Range], held: int) -> None:
        """Store this run's progress.

        Raises:
            FatalError: the projection contains more records than this run wrote.
        """
        holds, own = self._patiently(self._target.held), held + self._counts["written"]
        if holds != own:
            raise FatalError(
                f"projection {self._target.name} contains {holds} records, but this command wrote {own}, so the "
                f"service must also be writing to it. {_AGAIN}"
            )
        reached = {one.place: one.end for one in ranges}
        self._patiently(lambda: self._progress.write(reached, _note(holds)))

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Retry requests that a broker cannot handle yet. New partitions have no leader at first, and a new group has
        no coordinator.
        """
        return retry_until("leader or coordinator", lambda _: ask(), self._settings.timing.broker_wait, self._say)


class _Target:
    """A projection's topics."""

    def __init__(self, topics: TopicAdmin, settings: Settings, projection: Projection, say: Say) -> None:
        self.name = projection.topic
        self._topics = topics
        self._template = projection.template
        self._partitions: dict[str, int] = {}
        fixed = settings.output.topic if self._template else self.name
        (size,) = topics.max_message_bytes([fixed]).values()
        self.max_bytes = limit_of(projection, size) if self._template else size
        if self._template is None:
            self._partitions[self.name] = topics.describe([self.name], AclOperation.WRITE)[self.name].partitions
        else:
            self._open = TableTopics(topics, settings, projection, self._template, self.max_bytes, say).open

    def place(self, event: ChangeEvent) -> Place:
        """Return the destination of an event's records. It is the same as in the service."""
        template = self._template
        topic = self.name if template is None else template.topic(event.source, event.db, event.schema, event.table)
        if topic not in self._partitions:
            self._partitions[topic] = self._open(topic)
        return topic, output_partition(event.origin.topic, event.origin.partition, self._partitions[topic])

    def held(self) -> int:
        """Return the number of records that were ever written to the projection's topics, based on their offsets."""
        template = self._template
        names = [self.name] if template is None else _beginning(self._topics.names(), template.prefix)
        facts = self._topics.describe(names) if names else {}
        places = [place for name, found in facts.items() for place in places_of(name, found, None)]
        return sum(self._topics.offsets(places, "latest").values()) if places else 0


class _Writer:
    """A producer that remembers its first failure."""

    def __init__(self, producer: RecordProducer) -> None:
        self._producer = producer
        self._failure: str | None = None

    def write(self, topic: str, partition: int, records: Iterable[Record]) -> None:
        for record in records:
            while not self._producer.offer(topic, partition, record, self._report):
                self._producer.poll(0.1)
            self._producer.poll()
        self._check()

    def _report(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = write_failure(message.topic(), error)

    def _check(self) -> None:
        if self._failure is not None:
            raise FatalError(self._failure)

    def flush(self) -> None:
        """Return once everything has been delivered."""
        if self._producer.flush():
            raise FatalError("not all records were delivered")
        self._check()


def _event(record: Any) -> ChangeEvent:
    try:
        return decode(record.value())
    except ReadError as error:
        place = f"{record.topic()}/{record.partition()}, offset {record.offset()}"
        raise FatalError(f"{place}: {error}") from None


def _beginning(names: Iterable[str], prefix: str) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def _note(records: int) -> str:
    return noted(f"records={records}")
