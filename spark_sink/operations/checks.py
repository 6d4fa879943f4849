"""Questions whose answers `spark-sink run` depends on, each asked by itself: a wrong answer keeps no other from being
asked."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as fs
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from cdc_core.kafka_settings import librdkafka_options
from spark_sink.apply.existing_tables import check_tables
from spark_sink.config.settings import Settings
from spark_sink.control_tables.batches import BatchBook
from spark_sink.control_tables.requests import RequestBook
from spark_sink.errors import ConfigError, FatalError
from spark_sink.schema.catalog import SchemaReader
from spark_sink.spark.foreign_errors import reason
from spark_sink.tables.formats import FormatTables

# For one answer of a broker.
_SECONDS = 10.0

_BROKERS = "brokers"


class Question(NamedTuple):
    """A question to something that the sink needs.

    Args:
        ask: returns what is found; raises what is wrong.
        advice: what to do where the error is not ours, and does not say so.
        needs: the subject without which there is nobody to ask; "" where there is none.
    """

    subject: str
    ask: Callable[[], str]
    advice: str
    needs: str = ""


class Answer(NamedTuple):
    """An answer, in one line."""

    subject: str
    ok: bool
    text: str


def answers(questions: Iterable[Question]) -> Iterator[Answer]:
    """Ask one after the other; whatever one raises is its answer. What needs a subject that is wrong is not asked."""
    wrong: set[str] = set()
    for question in questions:
        answer = _answer(question, wrong)
        if not answer.ok:
            wrong.add(answer.subject)
        yield answer


def _answer(question: Question, wrong: Container[str]) -> Answer:
    if question.needs in wrong:
        return Answer(question.subject, False, f"not asked, as that needs what is wrong above: {question.needs}")
    try:
        return Answer(question.subject, True, question.ask())
    except (ConfigError, FatalError) as error:
        return Answer(question.subject, False, " ".join(str(error).split()))
    except Exception as error:
        return Answer(question.subject, False, f"{_told(error)}; {question.advice}")


def questions(settings: Settings, check_java: Callable[[], None]) -> list[Question]:
    """All questions to what lies outside of the configuration file.

    Args:
        check_java: starts and ends a JVM that Spark would run in.
    """
    reading = "check kafka.* and the rights of its user (docs/sink/running.md: Read on both topics)"
    topic, schemas = settings.input.topic, settings.input.schemas
    return [
        Question(_BROKERS, partial(_brokers, settings), reading),
        Question(f"topic {topic}", partial(_topic, settings, topic), reading, _BROKERS),
        Question(f"topic {schemas}", partial(_schemas_topic, settings), reading, _BROKERS),
        Question("Java and jars", partial(_java, check_java), "check spark.*, JAVA_HOME, jars (docs/sink/running.md)"),
        _store_question("tables.warehouse", settings, settings.tables.warehouse),
        _store_question("checkpoint", settings, settings.checkpoint),
        *([] if settings.iceberg_catalog is None else [_catalog_question(settings)]),
        Question("tables", partial(_tables, settings), "they cannot be read: check tables.warehouse"),
    ]


def _store_question(subject: str, settings: Settings, folder: str) -> Question:
    advice = f"the sink reads, writes and deletes files in {folder}: check the folder and the rights of this user"
    return Question(subject, partial(_store, settings, folder), advice)


def _catalog_question(settings: Settings) -> Question:
    advice = "check tables.iceberg_catalog: its address, its properties, and the rights of its user"
    return Question("tables.iceberg_catalog", partial(_catalog, settings), advice)


def _catalog(settings: Settings) -> str:
    """Ask the catalog of the Iceberg tables for its namespaces; that it makes tables shows when the sink starts."""
    catalog = settings.iceberg_catalog
    FormatTables(settings.tables.warehouse, catalog=catalog).iceberg_catalog.reach()
    return "" if catalog is None else f"{catalog.address} answers"


def _brokers(settings: Settings) -> str:
    with closing(SchemaReader(librdkafka_options(settings.kafka), settings.input.schemas)) as reader:
        reader.reach(0)
    return f"{settings.kafka.bootstrap_servers} answers"


def _topic(settings: Settings, topic: str) -> str:
    return f"{_partitions(settings, topic)} partition(s), and may be read"


def _schemas_topic(settings: Settings) -> str:
    topic = settings.input.schemas
    partitions = _partitions(settings, topic)
    if partitions != 1:
        raise ConfigError(
            f"it has {partitions} partitions, and the order of schemas is that of one: is input.schemas_topic right?"
        )
    return "1 partition, and may be read"


def _partitions(settings: Settings, topic: str) -> int:
    """The number of partitions of a topic that our user may read."""
    admin = AdminClient({**librdkafka_options(settings.kafka), "log_level": 0})
    (future,) = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=_SECONDS
    ).values()
    try:
        described = future.result(_SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise ConfigError(
                "there is no such topic, or our user may not see it: start the translator, which makes it, or name the "
                "right one in input"
            ) from None
        raise
    allowed = described.authorized_operations
    if allowed is not None and not {AclOperation.READ, AclOperation.ALL} & set(allowed):
        raise ConfigError("our user may not read it: give it Read on the topic")
    return len(described.partitions)


def _java(check_java: Callable[[], None]) -> str:
    check_java()
    return "Java starts, with the jars that the configuration needs"


def _store(settings: Settings, folder: str) -> str:
    """Commit to a table and delete it again; of a local folder that is not there yet, say where it would be made."""
    local = _local(folder)
    if local is not None and not local.exists():
        above = next(parent for parent in local.parents if parent.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            raise ConfigError(
                f"{folder} is not there, and this user cannot make it in {above}: make it, or name another"
            )
        return f"{folder} is not there yet, and can be made"
    name = f"_cdc_check.{uuid.uuid4().hex}"
    # The environment of this process leads to the bucket of the warehouse; that of the checkpoint may be another.
    store = dict(settings.storage.environment(folder))
    DeltaTable.create(f"{folder.rstrip('/')}/{name}", pa.schema([("checked", pa.int64())]), storage_options=store)
    if local is not None:
        shutil.rmtree(local / name)
    else:
        fs.PyFileSystem(DeltaStorageHandler(folder, store)).delete_dir(name)
    return f"{folder} can be written"


def _local(folder: str) -> Path | None:
    """A folder of this machine; None for an object store."""
    url = urlsplit(folder)
    if not url.scheme:
        return Path(folder).absolute()
    return Path(unquote(url.path)) if url.scheme == "file" else None


def _tables(settings: Settings) -> str:
    warehouse = settings.tables.warehouse
    names = BatchBook(warehouse, settings.pipeline, "", settings.input.topic).tables()
    rules = settings.tables.rules
    names -= RequestBook(warehouse, settings.pipeline).open_targets("rebuild")
    check_tables(names, FormatTables(warehouse, formats=rules.formats, catalog=settings.iceberg_catalog), rules)
    return f"{len(names)} of this pipeline, and each is what the configuration says"


def _told(error: Exception) -> str:
    if isinstance(error, KafkaException):
        return str(error.args[0].str())
    return f"{type(error).__name__}: {reason(error)}"
