"""Report runs and columns to an OpenLineage receiver: the configuration section, the events and the reports."""

from __future__ import annotations

from cdc_core.lineage.events import ColumnSource, Dataset, Field, JobDatasets, kafka_namespace, storage_dataset
from cdc_core.lineage.reports import End, LineageReports
from cdc_core.lineage.settings import Lineage

__all__ = [
    "ColumnSource",
    "Dataset",
    "End",
    "Field",
    "JobDatasets",
    "Lineage",
    "LineageReports",
    "kafka_namespace",
    "storage_dataset",
]
