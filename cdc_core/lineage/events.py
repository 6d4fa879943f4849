"""Build OpenLineage events (https://openlineage.io/spec/2-0-2/OpenLineage.json): a job, its datasets and their columns.

The events contain names and types, but never values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from cdc_core.state_format import release

_SPEC = "https://openlineage.io/spec"

# The published versions of the facets that these events contain.
_FACETS: Mapping[str, str] = {
    "schema": "1-2-0/SchemaDatasetFacet",
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet",
    "symlinks": "1-0-1/SymlinksDatasetFacet",
    "jobType": "2-0-4/JobTypeJobFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
    "parent": "1-2-0/ParentRunFacet",
}

# The stores whose tables have names without a leading slash, by URL scheme, with the scheme of their namespace.
_BUCKETS: Mapping[str, str] = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs"}

Kind: TypeAlias = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL"]


class Field(Struct, frozen=True):
    """A column. In a topic with several tables, it may also be a table, whose columns are `fields`."""

    name: str
    type: str
    fields: tuple[Field, ...] = ()


class ColumnSource(Struct, frozen=True):
    """The column from which a column comes.

    Args:
        mask: the mask that replaces its values, or None if they are unchanged.
    """

    namespace: str
    dataset: str
    field: str
    mask: str | None = None


class Dataset(Struct, frozen=True):
    """A topic or a table.

    Args:
        fields: its columns. Empty if they are unknown.
        sources: the sources of each column, by its path in `fields`. Dots separate the names in a path.
        other_name: its other namespace and name, such as those in a catalog.
    """

    namespace: str
    name: str
    fields: tuple[Field, ...] = ()
    sources: Mapping[str, Sequence[ColumnSource]] = {}
    other_name: tuple[str, str] | None = None


class JobDatasets(Struct, frozen=True):
    """The datasets that a job reads and writes."""

    inputs: tuple[Dataset, ...]
    outputs: tuple[Dataset, ...]


class RunOfJob(NamedTuple):
    """A run, and the job that it belongs to.

    Args:
        run: the run's UUID.
        namespace, name: of the job.
    """

    run: str
    namespace: str
    name: str


def kafka_namespace(bootstrap_servers: str) -> str:
    """Return the namespace for the topics of a Kafka cluster. It is named after the cluster's first broker."""
    first = bootstrap_servers.split(",")[0].strip()
    return f"kafka://{first.rpartition('://')[2]}"


def storage_dataset(location: str) -> tuple[str, str]:
    """Return the namespace and the name of a table in a folder or an object store, given its path or URL."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return "file", location.removeprefix("file:").rstrip("/")
    authority, _, path = rest.partition("/")
    if scheme == "file":
        return "file", f"/{path}".rstrip("/")
    if scheme in _BUCKETS:
        return f"{_BUCKETS[scheme]}://{authority}", path.strip("/")
    return f"{scheme}://{authority}", f"/{path}".rstrip("/")


def event(
    kind: Kind, at: datetime, run: RunOfJob, program: str, job: JobDatasets, parent: RunOfJob | None = None
) -> bytes:
    """Return an event as JSON.

    Args:
        at: when it happened.
        program: the program that reports, which is the processing engine.
        parent: the run that started this run.
    """
    facets = {
        "jobType": {"processingType": "STREAMING", "integration": "CDC", "jobType": "JOB"},
    }
    run_facets: dict[str, Any] = {"processing_engine": {"version": release(), "name": program}}
    if parent is not None:
        of_parent = {"namespace": parent.namespace, "name": parent.name}
        run_facets["parent"] = {"run": {"runId": parent.run}, "job": of_parent}
    body = {
        "eventType": kind,
        "eventTime": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "run": {"runId": run.run, "facets": _facets(run_facets)},
        "job": {"namespace": run.namespace, "name": run.name, "facets": _facets(facets)},
        "inputs": [_dataset(one) for one in job.inputs],
        "outputs": [_dataset(one) for one in job.outputs],
        "producer": _producer(),
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    return msgspec.json.encode(body)


def _dataset(dataset: Dataset) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if dataset.fields:
        facets["schema"] = {"fields": _fields(dataset.fields)}
    if dataset.sources:
        facets["columnLineage"] = {
            "fields": {column: {"inputFields": [*map(_input, sources)]} for column, sources in dataset.sources.items()}
        }
    if dataset.other_name is not None:
        namespace, name = dataset.other_name
        facets["symlinks"] = {"identifiers": [{"namespace": namespace, "name": name, "type": "TABLE"}]}
    return {"namespace": dataset.namespace, "name": dataset.name, "facets": _facets(facets)}


def _fields(fields: Sequence[Field]) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "type": field.type, **({"fields": _fields(field.fields)} if field.fields else {})}
        for field in fields
    ]


def _input(source: ColumnSource) -> dict[str, Any]:
    subtype = "IDENTITY" if source.mask is None else "TRANSFORMATION"
    how: dict[str, Any] = {"type": "DIRECT", "subtype": subtype, "masking": source.mask is not None}
    if source.mask is not None:
        how["description"] = source.mask
    place = {"namespace": source.namespace, "name": source.dataset, "field": source.field}
    return {**place, "transformations": [how]}


def _facets(facets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Add to each facet what the specification requires of all facets."""
    found = {}
    for name, facet in facets.items():
        version, _, title = _FACETS[name].partition("/")
        schema = f"{_SPEC}/facets/{version}/{title}.json#/$defs/{title}"
        found[name] = {"_producer": _producer(), "_schemaURL": schema, **facet}
    return found


def _producer() -> str:
    return f"urn:cdc-translator:{release()}"
