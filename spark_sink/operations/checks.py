"""Check everything that `spark-sink run` depends on. If a check fails, only the checks that depend on it are
skipped.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as fs
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from cdc_core.kafka_settings import librdkafka_options
from spark_sink.apply.existing_tables import check_tables, other_layouts
from spark_sink.config.settings import Settings
from spark_sink.config.unmatched_patterns import unmatched_patterns
from spark_sink.control_tables.batches import BatchTable
from spark_sink.control_tables.requests import RequestTable
from spark_sink.errors import ConfigError, FatalError
from spark_sink.schema.catalog import SchemaReader
from spark_sink.schema.reader_rules import Reader
from spark_sink.spark.foreign_errors import reason
from spark_sink.tables.formats import FormatTables

# The timeout for one broker response.
_SECONDS = 10.0

_BROKERS, _JAVA, _WAREHOUSE = "brokers", "Java and jars", "tables.warehouse"

NEEDED_BY_SPARK = frozenset({_JAVA, _WAREHOUSE})
"""If any of these checks fails, no table can be written."""

State: TypeAlias = Literal["ok", "note", "WRONG"]
"""A note is a result that the operator has to judge. It does not prevent `run` from starting."""


class Note(Exception):
    """Raised by a check whose result is a note."""


class Question(NamedTuple):
    """A check for something that the sink needs.

    Args:
        ask: returns its finding. It raises Note if the finding is a note. Any other exception means that the finding is
            wrong.
        advice: what to do if the check fails. Errors from libraries need this, because they give no advice.
        needs: the subject of the check that this one depends on, or "" for independent checks.
    """

    subject: str
    ask: Callable[[], str]
    advice: str
    needs: str = ""


class Answer(NamedTuple):
    """The result of a check, printed as one line."""

    subject: str
    state: State
    text: str


def answers(questions: Iterable[Question]) -> Iterator[Answer]:
    """Run the checks in order. Errors are returned as answers. If a check fails, the checks that depend on it are
    skipped.
    """
    wrong: set[str] = set()
    for question in questions:
        answer = _answer(question, wrong)
        if answer.state == "WRONG":
            wrong.add(answer.subject)
        yield answer


def _answer(question: Question, wrong: Container[str]) -> Answer:
    if question.needs in wrong:
        why = f"not checked because it depends on a failed check: {question.needs}"
        return Answer(question.subject, "WRONG", why)
    try:
        return Answer(question.subject, "ok", question.ask())
    except Note as note:
        return Answer(question.subject, "note", str(note))
    except (ConfigError, FatalError) as error:
        return Answer(question.subject, "WRONG", " ".join(str(error).split()))
    except Exception as error:
        return Answer(question.subject, "WRONG", f"{_told(error)}; {question.advice}")


def questions(settings: Settings, check_java: Callable[[], None]) -> list[Question]:
    """Return the checks for everything outside the configuration file.

    Args:
        check_java: starts a JVM just as Spark does, and stops it.
    """
    reading = "check kafka.* and the permissions of its user (docs/sink/running.md: Read on both topics)"
    topic, schemas = settings.input.topic, settings.input.schemas
    return [
        Question(_BROKERS, partial(_brokers, settings), reading),
        Question(f"topic {topic}", partial(_topic, settings, topic), reading, _BROKERS),
        Question(f"topic {schemas}", partial(_schemas_topic, settings), reading, _BROKERS),
        Question("patterns", partial(_patterns, settings), reading, f"topic {schemas}"),
        Question(_JAVA, partial(_java, check_java), "check spark.*, JAVA_HOME, jars (docs/sink/running.md)"),
        _store_question(_WAREHOUSE, settings, settings.tables.warehouse),
        _store_question("checkpoint", settings, settings.checkpoint),
        *([] if settings.iceberg_catalog is None else [_catalog_question(settings)]),
        Question("tables", partial(_tables, settings), "they cannot be read: check tables.warehouse"),
        *([] if settings.tables.contract is None else [Question("contracts", partial(_contracts, settings), "")]),
        Question("layouts", partial(_layouts, settings), "they cannot be read: check tables.warehouse"),
    ]


def _store_question(subject: str, settings: Settings, folder: str) -> Question:
    advice = (
        f"the sink must be able to read, write and delete files in {folder}; check the folder and this user's "
        "permissions"
    )
    return Question(subject, partial(_store, settings, folder), advice)


def _catalog_question(settings: Settings) -> Question:
    advice = "check the address, properties and user permissions in tables.iceberg_catalog"
    return Question("tables.iceberg_catalog", partial(_catalog, settings), advice)


def _catalog(settings: Settings) -> str:
    """Ask the catalog for the namespaces of Iceberg tables. Whether the catalog can create tables is tested only when
    the sink starts.
    """
    catalog = settings.iceberg_catalog
    FormatTables(settings.tables.warehouse, catalog=catalog).iceberg_catalog.reach()
    return "" if catalog is None else f"{catalog.address} answers"


def _brokers(settings: Settings) -> str:
    with closing(SchemaReader(librdkafka_options(settings.kafka), settings.input.schemas)) as reader:
        reader.reach(0)
    return f"{settings.kafka.bootstrap_servers} answers"


def _topic(settings: Settings, topic: str) -> str:
    return f"{_partitions(settings, topic)} partition(s), readable"


def _schemas_topic(settings: Settings) -> str:
    topic = settings.input.schemas
    partitions = _partitions(settings, topic)
    if partitions != 1:
        raise ConfigError(
            f"it has {partitions} partitions, but the schemas topic must have a single partition to keep its "
            "order; check input.schemas_topic"
        )
    return "1 partition, readable"


def _patterns(settings: Settings) -> str:
    """Compare the patterns in `tables` with the tables in the schemas topic."""
    with closing(SchemaReader(librdkafka_options(settings.kafka), settings.input.schemas)) as reader:
        known = reader.refresh().tables()
    if unmatched := unmatched_patterns(settings.tables, known):
        raise Note(f"no table matches {', '.join(unmatched)}; check the spelling")
    if not known:
        return "no table has been announced yet"
    return f"{len(known)} table{('s' if len(known) > 1 else '')} announced, and every pattern matches at least one"


def _partitions(settings: Settings, topic: str) -> int:
    """Return the number of partitions in a topic, and make sure that the user can read it."""
    admin = AdminClient({**librdkafka_options(settings.kafka), "log_level": 0})
    (future,) = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=_SECONDS
    ).values()
    try:
        described = future.result(_SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise ConfigError(
                "the topic does not exist or is not visible to this user; start the translator, which creates the "
                "topic, or correct the topic name in input"
            ) from None
        raise
    allowed = described.authorized_operations
    if allowed is not None and not {AclOperation.READ, AclOperation.ALL} & set(allowed):
        raise ConfigError("this user cannot read it; grant Read on the topic")
    return len(described.partitions)


def _java(check_java: Callable[[], None]) -> str:
    check_java()
    return "Java starts with the jars that the configuration requires"


def _store(settings: Settings, folder: str) -> str:
    """Commit to a test table, and delete the table again. If a local folder does not exist yet, report that it can be
    created.
    """
    local = _local(folder)
    if local is not None and not local.exists():
        above = next(parent for parent in local.parents if parent.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            raise ConfigError(
                f"{folder} does not exist, and this user cannot create it in {above}; create it, or configure "
                "another folder"
            )
        return f"{folder} does not exist yet but can be created"
    name = f"_cdc_check.{uuid.uuid4().hex}"
    # This process's environment gives access to the warehouse bucket. The checkpoint can be in another bucket.
    store = dict(settings.storage.environment(folder))
    DeltaTable.create(f"{folder.rstrip('/')}/{name}", pa.schema([("checked", pa.int64())]), storage_options=store)
    if local is not None:
        shutil.rmtree(local / name)
    else:
        fs.PyFileSystem(DeltaStorageHandler(folder, store)).delete_dir(name)
    return f"{folder} is writable"


def _local(folder: str) -> Path | None:
    """Return a local folder, or None for an object store."""
    url = urlsplit(folder)
    if not url.scheme:
        return Path(folder).absolute()
    return Path(unquote(url.path)) if url.scheme == "file" else None


def _tables(settings: Settings) -> str:
    names = _written(settings)
    check_tables(names, _opened(settings), settings.tables.rules)
    return f"{len(names)} of this pipeline, all as configured"


def _contracts(settings: Settings) -> str:
    """Read the files in `tables.contract`."""
    return f"{len(settings.tables.contracts)} read"


def _layouts(settings: Settings) -> str:
    """Compare the tables with `tables.layout`."""
    if found := other_layouts(_written(settings), _opened(settings)):
        told = "; ".join(f"{name} ({', '.join(differing)})" for name, differing in found.items())
        raise Note(f"not as configured in tables.layout: {told}. `spark-sink relayout` changes an existing table")
    return "all as configured"


def reader_questions(settings: Settings, readers: Iterable[Reader]) -> list[Question]:
    """Return a check for each reader, which finds out whether it can read the pipeline's tables."""
    advice = "the tables cannot be read: check tables.warehouse"
    return [Question(f"reader {reader}", partial(_reads, settings, reader), advice) for reader in readers]


def _reads(settings: Settings, reader: Reader) -> str:
    tables, names = _opened(settings), sorted(_written(settings))
    found: dict[tuple[bool, str], list[str]] = {}
    for name in names:
        for feature, is_known, why in reader.obstacles(tables.reader_features(name)):
            found.setdefault((is_known, f"{feature} ({why})"), []).append(name)
    if found:
        words = {True: "cannot read", False: "not known whether it reads"}
        told = (f"{words[is_known]} {what} of {', '.join(some)}" for (is_known, what), some in found.items())
        raise Note(f"{'; '.join(told)}. See docs/sink/layouts.md")
    return f"reads the features of all {len(names)} tables"


def _written(settings: Settings) -> set[str]:
    """Return the tables that the pipeline has written, except those that are about to be rebuilt."""
    warehouse = settings.tables.warehouse
    names = BatchTable(warehouse, settings.pipeline, "", settings.input.topic).tables()
    return names - RequestTable(warehouse, settings.pipeline).open_targets("rebuild")


def _opened(settings: Settings) -> FormatTables:
    rules = settings.tables.rules
    return FormatTables(
        settings.tables.warehouse, formats=rules.formats, catalog=settings.iceberg_catalog, layouts=rules.layouts
    )


def _told(error: Exception) -> str:
    if isinstance(error, KafkaException):
        return str(error.args[0].str())
    return f"{type(error).__name__}: {reason(error)}"
