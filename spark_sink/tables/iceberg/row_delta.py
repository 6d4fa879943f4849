"""Commits of files that the sink has written itself, through Iceberg's own row delta in the JVM. Iceberg detects
conflicts with other commits, assigns row ids, and writes the metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
from py4j.java_gateway import JavaPackage  # type: ignore[import-untyped]  # it has no types
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from spark_sink.tables.iceberg.catalogs import TableCatalog
from spark_sink.tables.iceberg.data_files import IcebergFile, Unsupported
from spark_sink.tables.iceberg.merge_on_read import UncommittedMerge
from spark_sink.tables.iceberg.puffin import VectorPlace, puffin
from spark_sink.tables.iceberg.spark_catalog import java_table

# The number of bytes that the JVM receives in one call.
_CHUNK = 1 << 22

# A Parquet file ends with the size of its footer, and four more bytes.
_FOOTER_END = 8


class RowDelta:
    """A change of rows in the newest version of a table.

    Args:
        reach: a condition that all changed and added rows satisfy, in Iceberg's JSON. Another commit with such rows is
            a conflict.

    Raises:
        Unsupported: the version of Iceberg lacks a class that is needed here.
    """

    def __init__(self, session: SparkSession, catalog: TableCatalog, name: str, reach: Any) -> None:
        self._java = _java(session._jvm)
        self._app = session.sparkContext.applicationId
        self._table = java_table(session, catalog, name)
        # Iceberg loads newer metadata only with the commit.
        self._metadata = self._table.operations().current()
        self._spec = self._table.spec()
        self._reach = self._java.conditions.fromJson(_json(reach), self._table.schema())
        self._tasks: dict[str, Any] = {}

    def is_of(self, table: Table) -> bool:
        """Return whether the change is based on the same version of the same table. The two clients of a catalog may
        use different URLs for the same file. A catalog need not have a file for the metadata.
        """
        files = {_file_name(self._metadata.metadataFileLocation()), _file_name(table.metadata_location)}
        return len(files) == 1 and None not in files and self._metadata.uuid() == str(table.metadata.table_uuid)

    def files(self) -> Iterator[IcebergFile]:
        """Return the files that might contain rows within the reach.

        Raises:
            Unsupported: only Spark can change rows in one of the files.
        """
        spec, parser = self._spec.specId(), self._java.tasks
        planned = self._table.newScan().filter(self._reach).planFiles()
        try:
            tasks = planned.iterator()
            while tasks.hasNext():
                task = tasks.next()
                file = IcebergFile.of_task(parser.toJson(task), spec)
                self._tasks[file.path] = task
                yield file
        finally:
            planned.close()

    def prepared(self, merged: UncommittedMerge, properties: Mapping[str, str]) -> Callable[[], object]:
        """Write the files of a merge, and return a function that commits them.

        Args:
            properties: the snapshot properties of the commit.
        """
        delta = self._table.newRowDelta()
        for name, value in {**properties, "spark.app.id": self._app}.items():
            delta.set(name, value)
        files: dict[str, pa.Buffer] = {}
        if merged.added is not None:
            path = self._new_path("00001.parquet")
            delta.addRows(self._data_file(path, merged.added))
            files[path] = merged.added
        if merged.vectors:
            path = self._new_path("00001-deletes.puffin")
            vectors, places = puffin(merged.vectors)
            self._add_vectors(delta, path, len(vectors), places)
            files[path] = pa.py_buffer(vectors)
        snapshot = self._metadata.currentSnapshot()
        if snapshot is not None:  # otherwise, validation covers all commits since the table was created
            delta.validateFromSnapshot(snapshot.snapshotId())
        delta.conflictDetectionFilter(self._reach)
        delta.validateDeletedFiles()
        delta.validateNoConflictingDeleteFiles()
        delta.validateNoConflictingDataFiles()
        commit: Callable[[], object] = delta.commit
        # Files are written last. If a version of Iceberg rejects a call above, no batch leaves files behind.
        for path, content in files.items():
            self._put(path, content)
        return commit

    def _new_path(self, suffix: str) -> str:
        """Return the path of a new file, where Spark would write it."""
        return str(self._table.locationProvider().newDataLocation(f"{uuid4()}-{suffix}"))

    def _data_file(self, path: str, content: pa.Buffer) -> Any:
        metrics = self._java.metrics(content, self._table)
        made = self._java.data_files.builder(self._spec).withPath(path).withFormat("parquet")
        return made.withFileSizeInBytes(content.size).withMetrics(metrics).build()

    def _add_vectors(self, delta: Any, path: str, size: int, places: Mapping[str, VectorPlace]) -> None:
        referenced = self._java.array_list()
        for of, place in places.items():
            referenced.add(of)
            delta.addDeletes(self._vector(path, size, of, place))
            for replaced in self._tasks[of].deletes():
                delta.removeDeletes(replaced)
        delta.validateDataFilesExist(referenced)

    def _vector(self, path: str, size: int, of: str, place: VectorPlace) -> Any:
        file = {
            "spec-id": self._spec.specId(),
            "content": "position-deletes",
            "file-path": path,
            "file-format": "puffin",
            "partition": [],
            "file-size-in-bytes": size,
            "record-count": place.rows,
            "referenced-data-file": of,
            "content-offset": place.offset,
            "content-size-in-bytes": place.size,
        }
        return self._java.files.fromJson(self._java.mapper.readTree(_json(file)), self._spec)

    def _put(self, path: str, content: pa.Buffer) -> None:
        """Write a file with the catalog's access to the storage."""
        written = self._table.io().newOutputFile(path).create()
        try:
            for start in range(0, content.size, _CHUNK):
                written.write(content.slice(start, min(_CHUNK, content.size - start)).to_pybytes())
        finally:
            written.close()


class _Java(NamedTuple):
    """Classes of Iceberg and Java. Py4J asks the JVM for each part of a class's name, so they are kept."""

    conditions: Any
    tasks: Any
    files: Any
    data_files: Any
    mapper: Any
    parquet: Any
    metrics_config: Any
    footer: Any
    byte_stream: Any
    stream: Any
    array_list: Any

    def metrics(self, file: pa.Buffer, table: Any) -> Any:
        """Return Iceberg's metrics of a Parquet file. Iceberg could also read the file, but it would then load Hadoop's
        configuration again.
        """
        size = int.from_bytes(file.slice(file.size - _FOOTER_END, 4).to_pybytes(), "little")
        footer = file.slice(file.size - _FOOTER_END - size, size).to_pybytes()
        metadata = self.footer.readParquetMetadata(self.byte_stream(footer))
        return self.parquet.footerMetrics(metadata, self.stream.empty(), self.metrics_config.forTable(table))


@cache
def _java(jvm: Any) -> _Java:
    try:
        found = _classes(jvm)
    except TypeError:  # Py4J takes an unknown class for a package, which cannot be called
        raise Unsupported from None
    if any(isinstance(one, JavaPackage) for one in found):
        raise Unsupported
    return found


def _classes(jvm: Any) -> _Java:
    iceberg, java = jvm.org.apache.iceberg, jvm.java
    parquet = iceberg.shaded.org.apache.parquet
    return _Java(
        conditions=iceberg.expressions.ExpressionParser,
        tasks=iceberg.ScanTaskParser,
        files=iceberg.ContentFileParser,
        data_files=iceberg.DataFiles,
        mapper=iceberg.util.JsonUtil.mapper(),
        parquet=iceberg.parquet.ParquetUtil,
        metrics_config=iceberg.MetricsConfig,
        footer=parquet.format.converter.ParquetMetadataConverter(parquet.ParquetReadOptions.builder().build()),
        byte_stream=java.io.ByteArrayInputStream,
        stream=java.util.stream.Stream,
        array_list=java.util.ArrayList,
    )


def _file_name(path: str | None) -> str | None:
    return None if path is None else path.rpartition("/")[2]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
