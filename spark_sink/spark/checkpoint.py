"""Read the folder with the query's checkpoint. It contains Spark's offset log, and the id that the sink adds."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from cdc_core.state_format import FORMAT, check_format, release
from spark_sink.errors import ConfigError, FatalError, Overtaken
from spark_sink.spark.session import hadoop_folder

# The file with the checkpoint id, which is part of every commit marker. A new checkpoint numbers its batches from the
# beginning, so markers from an old checkpoint must not make it skip a batch.
ID_FILE = "_sink_id"


def checkpoint_id(spark: SparkSession, checkpoint: str) -> str:
    """Return a checkpoint folder's id. The id is written on first use. Until the folder contains a batch, each start
    replaces the id.

    Raises:
        FatalError: the checkpoint has the format of a later release, or cannot be written.
        Overtaken: another sink wrote the id at the same time.
    """
    jvm: Any = spark._jvm
    folder = jvm.org.apache.hadoop.fs.Path(checkpoint)
    path = folder.suffix(f"/{ID_FILE}")
    # The id is written like Spark's own files in this folder: atomically, and by a single writer.
    files = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(
        folder, spark._jsparkSession.sessionState().newHadoopConf()
    )
    is_there = bool(files.exists(path))
    if is_there:
        stored = _stored_id(files, path)
        if has_progress(spark, checkpoint):
            return stored
    files.mkdirs(folder)
    id = uuid.uuid4().hex
    out = files.createAtomic(path, is_there)
    out.writeUTF(id)
    # Releases from before 0.1.0 only read the id.
    out.writeUTF(str(FORMAT))
    out.writeUTF(release())
    try:
        out.close()
    except Py4JJavaError as error:
        if not is_there and files.exists(path):
            raise Overtaken(f"the checkpoint {checkpoint}") from None
        raise FatalError(f"the checkpoint {checkpoint} cannot be written: {error.java_exception}") from None
    return id


def check_id(spark: SparkSession, checkpoint: str, id: str) -> None:
    """Raise an error unless a checkpoint still has the id that marks its batches.

    If two sinks start with the same empty folder at the same time, either may replace the id of the other. The sink
    that writes the first offsets continues. This check runs before a commit.

    Raises:
        Overtaken: the checkpoint has another id.
    """
    files, folder = hadoop_folder(spark, checkpoint)
    if _stored_id(files, folder.suffix(f"/{ID_FILE}")) != id:
        raise Overtaken(f"the checkpoint {checkpoint}")


def _stored_id(files: Any, path: Any) -> str:
    try:
        stored = files.open(path)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.io.FileNotFoundException":
            raise
        # Another sink is replacing the id, which some file systems do in two steps.
        raise Overtaken(f"the checkpoint {path.getParent()}") from None
    try:
        id = str(stored.readUTF())
        try:
            format, writer = str(stored.readUTF()), str(stored.readUTF())
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() != "java.io.EOFException":
                raise
            return id  # from before release 0.1.0
        check_format(format, f"the checkpoint {path.getParent()}", writer)
        return id
    finally:
        stored.close()


def has_progress(spark: SparkSession, checkpoint: str) -> bool:
    """Return whether a checkpoint folder has a batch. If it does, Spark takes its offsets from there.

    Temporary files of an incomplete write do not count.
    """
    return progress(spark, checkpoint) != (None, None)


class CheckpointProgress(NamedTuple):
    """The number of the newest batch that Spark has planned, and of the newest that it has acknowledged. Each is None
    if there is no such batch.
    """

    planned: int | None
    acknowledged: int | None


def progress(spark: SparkSession, checkpoint: str) -> CheckpointProgress:
    """Return the newest batches in a checkpoint folder."""
    files, folder = hadoop_folder(spark, checkpoint)

    def newest(log: str) -> int | None:
        path = folder.suffix(f"/{log}")
        entries = files.listStatus(path) if files.exists(path) else ()
        names = (str(entry.getPath().getName()) for entry in entries)
        return max((int(name) for name in names if name.isdigit()), default=None)

    return CheckpointProgress(newest("offsets"), newest("commits"))


def check_progress(checkpoint: str, found: CheckpointProgress, ended: int | None) -> None:
    """Raise an error unless a checkpoint and the manifest match.

    Spark first plans a batch, then the manifest records it, and finally Spark acknowledges it. An older copy of either
    the checkpoint or the manifest is therefore detected.

    Args:
        ended: the newest batch in the manifest from this checkpoint, or None if there is none.

    Raises:
        ConfigError: the checkpoint or the manifest was rolled back, so events would silently be missing.
    """
    if found.acknowledged is not None and (ended is None or ended < found.acknowledged):
        known = "none of its batches" if ended is None else f"only batches up to {ended}"
        raise ConfigError(
            f"the warehouse was rolled back to a state before the checkpoint {checkpoint}, or it is a different "
            f"warehouse: the checkpoint acknowledged batch {found.acknowledged}, but _cdc.batches has {known}. The "
            f"events in between would be missing from all tables. {_EMPTY_CHECKPOINT}"
        )
    if ended is not None and (found.planned is None or ended > found.planned):
        raise ConfigError(
            f"the checkpoint {checkpoint} was rolled back to a state before the warehouse: its newest batch is "
            f"{found.planned}, but _cdc.batches contains its batch {ended}. New batches would get the numbers of "
            f"existing ones, so tables would skip their events. {_EMPTY_CHECKPOINT}"
        )


# This advice is right in both cases, because positions prevent events that are already in the tables from counting
# twice.
_EMPTY_CHECKPOINT = (
    "Move the checkpoint folder away and restart the sink. It then continues from the end of _cdc.batches, and "
    "nothing is applied twice"
)


def offset_entry(spark: SparkSession, checkpoint: str, batch: int) -> str:
    """Return a batch's entry in a checkpoint folder's offset log."""
    files, folder = hadoop_folder(spark, checkpoint)
    stored = files.open(folder.suffix(f"/offsets/{batch}"))
    try:
        jvm: Any = spark._jvm
        return str(jvm.org.apache.commons.io.IOUtils.toString(stored, "UTF-8"))
    finally:
        stored.close()


def planned_offsets(text: str, topic: str) -> Mapping[int, int]:
    """Return the offset that a batch reaches in each partition. It is in the last line of an entry in Spark's offset
    log.

    Raises:
        ValueError: the offset log is not version 1.
    """
    version, *_, last = text.splitlines()
    if version != "v1":
        raise ValueError(f"the offset log has version {version}; expected v1")
    offsets: Mapping[str, int] = json.loads(last)[topic]
    return {int(partition): offset for partition, offset in offsets.items()}
