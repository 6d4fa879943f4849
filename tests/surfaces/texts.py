"""The public surfaces of a release as texts (docs/stability.md)."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import pyarrow as pa

import cdc_core.reader
from dev.pages.cli_reference import PROGRAMS
from spark_sink.commands.verify import VerifyReport
from spark_sink.control_tables import batches, erased, maintenance, requests, verified
from spark_sink.events import parking, quarantine
from spark_sink.operations.certification import Certificate, CertifiedCatalog, CertifiedStep, CertifiedTable
from spark_sink.operations.status import (
    QUARANTINE_COLUMNS,
    BatchReport,
    CutReport,
    LastBatch,
    ParkedInCut,
    StatusReport,
    TableStatus,
    VerificationStatus,
)
from tests.cdc_core.metrics_of_both import registries
from tests.surfaces import python_names
from translator import conformance, dialect_api
from translator.operations.audit import Account, AuditFinding, AuditFindings, AuditReport
from translator.operations.contracts import Breach, ContractCheck
from translator.operations.diff import Comparison, Difference, Example
from translator.operations.learn import LearnedMetadata, LearnReport
from translator.operations.sample_checks import Check
from translator.operations.send import Sent
from translator.operations.status import (
    DeadLetters,
    HeldTableStatus,
    NewSchema,
    PartitionStatus,
    Status,
    StoppedPartition,
)
from translator.operations.upgrade_check import DifferenceGroup, UpgradeReport

FOLDER = Path(__file__).parent

_DIALECT_MODULES = (dialect_api, conformance)

_JSON: Mapping[str, tuple[type[msgspec.Struct], ...]] = {
    "translator audit": (AuditReport, Account, AuditFindings, AuditFinding),
    "translator check": (Check,),
    "translator contract check": (ContractCheck, Breach),
    "translator diff": (Comparison, Difference, Example),
    "translator learn": (LearnReport, LearnedMetadata),
    "translator send": (Sent,),
    "translator upgrade-check": (UpgradeReport, DifferenceGroup),
    "translator status": (Status, PartitionStatus, DeadLetters, HeldTableStatus, StoppedPartition, NewSchema),
}

_SINK_JSON: Mapping[str, tuple[type, ...]] = {
    "spark-sink batches": (BatchReport,),
    "spark-sink cut": (CutReport, ParkedInCut),
    "spark-sink status": (StatusReport, LastBatch, TableStatus, VerificationStatus),
    "spark-sink verify": (VerifyReport,),
}

_CONTROL_TABLES: Mapping[str, pa.Schema] = {
    "_cdc.batches": batches.ARROW,
    "_cdc.commands": requests.ARROW,
    "_cdc.erased": erased.ARROW,
    "_cdc.maintenance": maintenance.ARROW,
    "_cdc.parked": parking.ARROW,
    "_cdc.quarantine": quarantine.ARROW,
    "_cdc.verified": verified.ARROW,
}


def _dialect_api() -> Iterator[str]:
    for module in _DIALECT_MODULES:
        for name, since in module.SINCE.items():
            yield from python_names.lines(name, getattr(module, name), f"  since {since}")


def _reader() -> Iterator[str]:
    for name in cdc_core.reader.__all__:
        yield from python_names.lines(name, getattr(cdc_core.reader, name))


def _command_lines() -> Iterator[str]:
    for program, group in PROGRAMS.items():
        yield from _commands(program, group)


def _commands(path: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(f"{path} {name}", found)
        return
    yield path
    for parameter in command.params:
        names = "/".join(parameter.opts) if isinstance(parameter, click.Option) else parameter.human_readable_name
        required = " required" if parameter.required else ""
        words = f" {'|'.join(parameter.type.choices)}" if isinstance(parameter.type, click.Choice) else ""
        repeated = " repeated" if parameter.multiple or parameter.nargs != 1 else ""
        yield f"    {names}: {parameter.type.name}{words}{required}{repeated}{_default(parameter)}"


def _default(parameter: click.Parameter) -> str:
    """Return the default of an option. A flag is off by default."""
    default = parameter.to_info_dict()["default"]
    return "" if default is None or default is False or default == () else f" = {default}"


def _json() -> Iterator[str]:
    for command, structs in _JSON.items():
        yield f"{command} --json"
        for struct in structs:
            yield f"    {struct.__name__}"
            yield from (f"        {line}" for line in python_names.fields(struct))
    for command, shapes in _SINK_JSON.items():
        yield f"{command}" if command == "spark-sink cut" else f"{command} --json"
        for shape in shapes:
            yield f"    {shape.__name__}"
            yield from (f"        {line}" for line in python_names.keys(shape))
    yield "spark-sink check --certify"
    for struct in (Certificate, CertifiedCatalog, CertifiedTable, CertifiedStep):
        yield f"    {struct.__name__}"
        yield from (f"        {line}" for line in python_names.fields(struct))
    yield "spark-sink quarantine ls --json"
    yield from (f"    {name}: {quarantine.ARROW.field(name).type}" for name in QUARANTINE_COLUMNS)
    yield "    target: string"


def _metrics() -> Iterator[str]:
    for program, registry in registries().items():
        yield program
        labels: dict[str, Any] = {
            name: getattr(collector, "_labelnames", ())
            for collector, names in registry._collector_to_names.items()
            for name in names
        }
        for metric in sorted(registry.collect(), key=lambda one: one.name):
            # A family without a collector of its own has its labels only in its samples.
            sample = next((sample.labels for sample in metric.samples), {})
            with_labels = ",".join(labels.get(metric.name) or (name for name in sample if name != "le"))
            yield f"    {metric.name} {metric.type}" + (f" {{{with_labels}}}" if with_labels else "")


def _control_tables() -> Iterator[str]:
    for table, schema in _CONTROL_TABLES.items():
        yield table
        yield from (f"    {field.name}: {field.type}" for field in schema)


SURFACES: Mapping[str, Callable[[], Iterator[str]]] = {
    "command_lines": _command_lines,
    "control_tables": _control_tables,
    "dialect_api": _dialect_api,
    "json": _json,
    "metrics": _metrics,
    "reader": _reader,
}


def text(surface: str) -> str:
    return "".join(f"{line}\n" for line in SURFACES[surface]())


def file(surface: str) -> Path:
    return FOLDER / f"{surface}.txt"
