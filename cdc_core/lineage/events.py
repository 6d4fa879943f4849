"""OpenLineage events (https://openlineage.io/spec/2-0-2/OpenLineage.json): a job, its datasets and their columns.

The events contain names and types, and never values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from cdc_core.state_format import release

_SPEC = "https://openlineage.io/spec"

# The published versions of the facets that these events contain.
_FACETS: Mapping[str, str] = {
    "schema": "1-2-0/SchemaDatasetFacet",
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet",
    "jobType": "2-0-4/JobTypeJobFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
}

Kind: TypeAlias = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL"]


class Field(Struct, frozen=True):
    """A column, or a table in a topic that contains several tables, whose columns are `fields`."""

    name: str
    type: str
    fields: tuple[Field, ...] = ()


class ColumnSource(Struct, frozen=True):
    """The column from which a column comes.

    Args:
        mask: the mask that replaces its values; None if the values are unchanged.
    """

    namespace: str
    dataset: str
    field: str
    mask: str | None = None


class Dataset(Struct, frozen=True):
    """A topic or a table.

    Args:
        fields: its columns; empty if they are unknown.
        sources: the source of each column, by its path in `fields`, with dots between the names.
    """

    namespace: str
    name: str
    fields: tuple[Field, ...] = ()
    sources: Mapping[str, ColumnSource] = {}


class JobDatasets(Struct, frozen=True):
    """The datasets that a job reads and writes."""

    inputs: tuple[Dataset, ...]
    outputs: tuple[Dataset, ...]


def kafka_namespace(bootstrap_servers: str) -> str:
    """Return the namespace of the topics of a Kafka cluster, which is named after its first broker."""
    first = bootstrap_servers.split(",")[0].strip()
    return f"kafka://{first.rpartition('://')[2]}"


def event(kind: Kind, at: datetime, run: str, namespace: str, name: str, program: str, job: JobDatasets) -> bytes:
    """Return an event as JSON.

    Args:
        at: when it happened.
        run: the run's UUID.
        namespace, name: of the job.
        program: the program that reports, which is the processing engine.
    """
    facets = {
        "jobType": {"processingType": "STREAMING", "integration": "CDC", "jobType": "JOB"},
    }
    engine = {"version": release(), "name": program}
    body = {
        "eventType": kind,
        "eventTime": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "run": {"runId": run, "facets": _facets({"processing_engine": engine})},
        "job": {"namespace": namespace, "name": name, "facets": _facets(facets)},
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
            "fields": {column: {"inputFields": [_input(source)]} for column, source in dataset.sources.items()}
        }
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
    """Add to each facet what the specification requires of every facet."""
    found = {}
    for name, facet in facets.items():
        version, _, title = _FACETS[name].partition("/")
        schema = f"{_SPEC}/facets/{version}/{title}.json#/$defs/{title}"
        found[name] = {"_producer": _producer(), "_schemaURL": schema, **facet}
    return found


def _producer() -> str:
    return f"urn:cdc-translator:{release()}"
