"""Read events with OpenLineage's own client, and print them as the client writes them.

A test runs this file in an environment that has the client. The client's classes are generated from the published
specification, so a name that they do not know, or a missing one, ends the program with an error.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState  # type: ignore[import-not-found]
from openlineage.client.facet_v2 import (  # type: ignore[import-not-found]
    column_lineage_dataset,
    job_type_job,
    parent_run,
    processing_engine_run,
    schema_dataset,
    symlinks_dataset,
)
from openlineage.client.serde import Serde  # type: ignore[import-not-found]


def _facet(kind: Any, given: dict[str, Any], **converted: Any) -> Any:
    """Return a facet, whose schema must be the one that the client knows."""
    values = {name: value for name, value in given.items() if not name.startswith("_")} | converted
    made = kind(**values, producer=given["_producer"])
    assert made._schemaURL == given["_schemaURL"], (made._schemaURL, given["_schemaURL"])
    return made


def _field(given: dict[str, Any]) -> Any:
    return schema_dataset.SchemaDatasetFacetFields(**{**given, "fields": [*map(_field, given.get("fields", []))]})


def _input(given: dict[str, Any]) -> Any:
    steps = [column_lineage_dataset.Transformation(**one) for one in given["transformations"]]
    return column_lineage_dataset.InputField(**{**given, "transformations": steps})


def _dataset(kind: Any, given: dict[str, Any]) -> Any:
    facets = dict(given["facets"])
    if (schema := facets.get("schema")) is not None:
        fields = [*map(_field, schema["fields"])]
        facets["schema"] = _facet(schema_dataset.SchemaDatasetFacet, schema, fields=fields)
    if (lineage := facets.get("columnLineage")) is not None:
        made = {
            column: column_lineage_dataset.Fields(**{**one, "inputFields": [*map(_input, one["inputFields"])]})
            for column, one in lineage["fields"].items()
        }
        facets["columnLineage"] = _facet(column_lineage_dataset.ColumnLineageDatasetFacet, lineage, fields=made)
    if (symlinks := facets.get("symlinks")) is not None:
        names = [symlinks_dataset.Identifier(**one) for one in symlinks["identifiers"]]
        facets["symlinks"] = _facet(symlinks_dataset.SymlinksDatasetFacet, symlinks, identifiers=names)
    assert facets.keys() <= {"schema", "columnLineage", "symlinks"}
    return kind(**{**given, "facets": facets})


def _event(given: dict[str, Any]) -> Any:
    run, job = given["run"], given["job"]
    facets = {
        "processing_engine": _facet(processing_engine_run.ProcessingEngineRunFacet, run["facets"]["processing_engine"])
    }
    if (parent := run["facets"].get("parent")) is not None:
        parts = {"run": parent_run.Run(**parent["run"]), "job": parent_run.Job(**parent["job"])}
        facets["parent"] = _facet(parent_run.ParentRunFacet, parent, **parts)
    type_ = _facet(job_type_job.JobTypeJobFacet, job["facets"]["jobType"])
    assert facets.keys() == run["facets"].keys()
    assert {"jobType"} == job["facets"].keys()
    made = RunEvent(
        eventType=RunState(given["eventType"]),
        eventTime=given["eventTime"],
        run=Run(**{**run, "facets": facets}),
        job=Job(**{**job, "facets": {"jobType": type_}}),
        inputs=[_dataset(InputDataset, one) for one in given["inputs"]],
        outputs=[_dataset(OutputDataset, one) for one in given["outputs"]],
        producer=given["producer"],
    )
    assert made.schemaURL == given["schemaURL"], (made.schemaURL, given["schemaURL"])
    return made


for line in sys.stdin:
    print(json.dumps(json.loads(Serde.to_json(_event(json.loads(line))))))
