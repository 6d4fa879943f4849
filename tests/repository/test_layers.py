"""Dependencies point one way. The tests check the imports of every file.

The rooms of a package are listed in the order in which data passes through them. A room can import `cdc_core` and the
rooms listed before it. Inside a room, files must not import each other in circles (docs/architecture.md).
"""

import ast
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ROOMS: Mapping[str, tuple[str, ...]] = {
    "cdc_core": (
        *(
            "errors",
            "installed_plugins",
            "config_mistakes",
            "config",
            "envelope",
            "position",
            "statement_notes",
            "table_id",
            "table_contract",
            "metrics_registry",
            "sized_cache",
            "state_format",
            "deprecations",
            "transaction",
        ),
        *("wire_format", "reader"),
        *("token_providers", "kafka_tokens", "kafka_settings", "otlp", "lineage", "command_line"),
    ),
    "translator": (
        *("errors", "message", "proposals", "installed_plugins", "config"),
        *("values", "_native", "codecs", "dialects", "dialect_api", "translation"),
        *("kafka", "state", "resolution", "service", "operations", "conformance", "web", "commands", "__main__"),
    ),
    "spark_sink": (
        *("errors", "signals", "model", "schema", "config", "spark"),
        *("events", "tables", "table_report", "control_tables", "metrics"),
        *("probes", "lag", "apply", "operations", "lineage"),
        *("batch_sizing", "job", "assembly", "logs", "commands", "__main__"),
    ),
}
PROGRAMS = ("translator", "spark_sink")

# These do no I/O and know no configuration. They receive lookups as callables.
PURE = frozenset({"message", "values", "_native", "codecs", "dialects", "dialect_api", "translation"})
# What these can import from `config`: rules that are built from settings and do not depend on a file.
PURE_CONFIG = frozenset({"mask_rules", "options", "table_filter"})
IO_LIBRARIES = frozenset({"aiohttp", "asyncio", "http", "httpx2", "requests", "socket", "ssl", "subprocess", "urllib"})

# Siblings: neither can import the other, although one comes first in the list.
SIBLINGS = {"codecs": "dialects", "dialects": "codecs"}

STREAM_LIBRARIES = frozenset({"faust", "mode", "aiokafka"})
STREAM_MODULES = frozenset(
    {
        *("translator.kafka.oauth", "translator.kafka.partitioner"),
        *(
            f"translator.service.{name}"
            for name in (
                *("app", "faust_pauses", "faust_settings", "faust_transport", "fetched_records", "paced_fetcher"),
                "stopping",
            )
        ),
    }
)
KAFKA_ROOMS = frozenset({"kafka", "state", "service", "operations"})

SPARK_LIBRARIES = frozenset({"pyspark", "py4j"})
ROOMS_WITHOUT_SPARK = frozenset(
    {"model", "schema", "table_report", "control_tables", "metrics", "apply", "operations", "batch_sizing"}
)
SPARK_MODULES = frozenset({"spark_sink.apply.spark_runner"})
SPARK_OF_READERS = "cdc_core.reader.spark"

SETTINGS = frozenset({"translator.config.settings", "spark_sink.config.settings"})


def violations(module: str, source: str, *, package: bool = False) -> list[str]:
    """Describe the forbidden imports of one module. Set `package` if the source is an `__init__.py`."""
    broken = []
    for imported in _imports(module, source, package=package):
        reasons = (rule(module, imported) for rule in RULES)
        broken += [f"{module} imports {imported}: {reason}" for reason in reasons if reason]
    return broken


def _room(module: str) -> tuple[str, str]:
    """Return a module's package and its room there. The package itself has no room."""
    package, _, inside = module.partition(".")
    return package, inside.partition(".")[0]


def _empty_front_doors(module: str, imported: str) -> str | None:
    if module in ROOMS:
        return "the package's __init__ imports nothing, so that any part of it loads alone"
    return None


def _one_way(module: str, imported: str) -> str | None:
    (package, room), (target, wanted) = _room(module), _room(imported)
    if package not in ROOMS or package != target or not room:
        return None
    rooms = ROOMS[package]
    if room not in rooms:
        return f"{room} has no place among the rooms; give it one in this test"
    before = rooms[: rooms.index(room)]
    if wanted != room and wanted not in before:
        return f"{room} may import {', '.join(before) or 'nothing of ours'}"
    return None


def _packages_apart(module: str, imported: str) -> str | None:
    package, target = _room(module)[0], _room(imported)[0]
    if package == "cdc_core" and target in PROGRAMS:
        return "what both programs share knows neither"
    if package in PROGRAMS and target in PROGRAMS and package != target:
        return "neither program knows the other; what both need is in cdc_core"
    return None


def _pure_rooms_know_no_settings(module: str, imported: str) -> str | None:
    package, room = _room(module)
    part = imported.removeprefix("translator.config.").partition(".")[0]
    if (
        package == "translator"
        and room in PURE
        and _room(imported) == ("translator", "config")
        and part not in PURE_CONFIG
    ):
        return f"{room} knows no configuration; what it needs is passed to it"
    return None


def _siblings_apart(module: str, imported: str) -> str | None:
    package, room = _room(module)
    if package == "translator" and _room(imported) == ("translator", SIBLINGS.get(room)):
        return f"{room} and {SIBLINGS[room]} do not know each other"
    return None


def _no_sibling_dialects(module: str, imported: str) -> str | None:
    importer, target = module.split("."), imported.split(".")
    if importer[:2] != ["translator", "dialects"] or target[:2] != ["translator", "dialects"]:
        return None
    if len(importer) < 3:  # the dictionary of all dialects
        return None
    shared = len(target) > 2 and target[2].startswith("_")
    if not shared and target[2:3] != importer[2:3]:
        return "a dialect does not know its siblings; what several need is a module of dialects/ with an underscore"
    return None


def _stream_libraries_at_the_edge(module: str, imported: str) -> str | None:
    if imported.split(".")[0] in STREAM_LIBRARIES and module not in STREAM_MODULES:
        return f"only {', '.join(sorted(STREAM_MODULES))} may"
    return None


def _kafka_at_the_edge(module: str, imported: str) -> str | None:
    package, room = _room(module)
    if package == "translator" and room not in KAFKA_ROOMS and imported.split(".")[0] == "confluent_kafka":
        return f"only {', '.join(sorted(KAFKA_ROOMS))} know Kafka"
    return None


def _no_io_inside(module: str, imported: str) -> str | None:
    package, room = _room(module)
    if package == "translator" and room in PURE and imported.split(".")[0] in IO_LIBRARIES:
        return f"{room} does no I/O; what it looks up arrives as a callable"
    return None


def _files_are_read_by_settings(module: str, imported: str) -> str | None:
    if _room(imported) == ("cdc_core", "config") and _room(module)[0] in PROGRAMS and module not in SETTINGS:
        return "only the settings of a program are read from a file"
    return None


def _no_spark_in_decisions(module: str, imported: str) -> str | None:
    package, room = _room(module)
    of_spark = imported.split(".")[0] in SPARK_LIBRARIES and module not in SPARK_MODULES
    if package == "spark_sink" and room in ROOMS_WITHOUT_SPARK and of_spark:
        return f"{room} decides without a Spark session, and is tested without one"
    return None


def _core_without_spark(module: str, imported: str) -> str | None:
    of_spark = imported.split(".")[0] in SPARK_LIBRARIES
    if _room(module)[0] == "cdc_core" and of_spark and module != SPARK_OF_READERS:
        return f"only {SPARK_OF_READERS} may"
    if _room(module) == ("cdc_core", "reader") and imported.startswith(SPARK_OF_READERS) and module != SPARK_OF_READERS:
        return "readers without Spark import the package"
    return None


def _product_without_workshop(module: str, imported: str) -> str | None:
    if imported.split(".")[0] in {"dev", "tests", "bench"}:
        return "dev, tests and bench are not shipped"
    return None


RULES = (
    _empty_front_doors,
    _one_way,
    _packages_apart,
    _pure_rooms_know_no_settings,
    _siblings_apart,
    _no_sibling_dialects,
    _stream_libraries_at_the_edge,
    _kafka_at_the_edge,
    _no_io_inside,
    _files_are_read_by_settings,
    _no_spark_in_decisions,
    _core_without_spark,
    _product_without_workshop,
)


@cache
def _imports(module: str, source: str, *, package: bool) -> Sequence[str]:
    """Return the full names of all imports in the source, including those in functions and for type checking."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from . import x` is relative to the package. In an __init__.py, that is the module itself.
            above = module.split(".")[: None if package and node.level == 1 else int(package) - node.level]
            base = ".".join([*(above if node.level else []), *([node.module] if node.module else [])])
            if base != "__future__":
                names += (f"{base}.{alias.name}" for alias in node.names)
    return names


def _modules() -> Iterator[tuple[str, Path]]:
    for product in ROOMS:
        for path in sorted((ROOT / product).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if path.name == "__init__.py" else parts), path


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, even indirectly or only for type checking."""
    order = TopologicalSorter({module: [one for one in wanted if one != module] for module, wanted in imports.items()})
    try:
        order.prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


def _module_of(imported: str, modules: Container[str]) -> str | None:
    """Return the module that a full name is in, or that it is."""
    parts = imported.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in modules), None)


@pytest.mark.parametrize(("module", "path"), [pytest.param(*found, id=found[0]) for found in _modules()])
def test_every_module_keeps_the_layers(module: str, path: Path) -> None:
    """No product file imports a module that is off limits for its room."""
    assert [] == violations(module, path.read_text(encoding="utf-8"), package=path.name == "__init__.py")


def test_files_import_in_no_circle() -> None:
    """The imports between the files of a room form no circle."""
    modules = dict(_modules())
    imports = {}
    for module, path in modules.items():
        names = _imports(module, path.read_text(encoding="utf-8"), package=path.name == "__init__.py")
        imports[module] = {found for name in names if (found := _module_of(name, modules)) is not None}
    assert [] == circles(imports)


def test_the_search_for_circles_finds() -> None:
    """The search finds a circle of three files and one between a package and its file. A self-import is allowed."""
    assert circles({"a": ["b"], "b": ["c"], "c": ["a"]}) != []
    assert circles({"a": ["a.b"], "a.b": ["a"]}) != []
    assert circles({"a": ["a", "b"], "b": []}) == []


def test_every_room_is_there() -> None:
    """The walk covers the products, and the lists contain no room that no longer exists."""
    found = {_room(module) for module, _ in _modules()}
    assert found == {(package, room) for package, rooms in ROOMS.items() for room in (*rooms, "")}


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("translator", "import os", "imports nothing"),
        ("spark_sink", "from spark_sink.assembly import run", "imports nothing"),
        ("cdc_core", "from cdc_core import config", "imports nothing"),
        ("cdc_core.envelope", "from translator.errors import Stop", "knows neither"),
        ("cdc_core.config", "import spark_sink.config.settings", "knows neither"),
        ("cdc_core.errors", "from cdc_core.config import load", "errors may import nothing of ours"),
        ("cdc_core.reader.apply", "import pyspark", "only cdc_core.reader.spark may"),
        ("cdc_core.reader.apply", "from cdc_core.reader.spark import decoded", "readers without Spark"),
        ("translator.errors", "import translator.message", "errors may import nothing of ours"),
        ("translator.errors", "from translator import VERSION", "errors may import nothing of ours"),
        ("translator.message", "from translator.values import converter", "message may import errors"),
        ("translator.message", "from cdc_core import config", "only the settings"),
        ("translator.values", "from .dialects import canal", "values may import"),
        ("translator.values", "from translator.config.settings import Settings", "knows no configuration"),
        ("translator.dialects.canal", "from translator.codecs import json", "do not know each other"),
        ("translator.dialects.canal", "from translator.dialects.shareplex import decode", "siblings"),
        ("translator.dialects.canal", "from translator.dialects import shareplex", "siblings"),
        ("translator.dialects.canal.rows", "from ..qlik import masks", "siblings"),
        ("translator.dialects.canal.rows", "from translator.dialects import DIALECTS", "siblings"),
        ("translator.dialects._json", "from translator.dialects.canal import Canal", "siblings"),
        ("translator.dialects.qlik", "def f():\n    import translator.kafka.retry", "dialects may import"),
        ("translator.dialects.qlik", "import urllib.request", "does no I/O"),
        ("translator.dialects.qlik", "from confluent_kafka import Message", "know Kafka"),
        (
            "translator.translation.translate",
            "from translator.config.settings import Settings",
            "knows no configuration",
        ),
        ("translator.translation.translate", "from translator.service import app", "translation may import"),
        ("translator.config.settings", "from translator.service import app", "config may import"),
        ("translator.kafka.admin", "from translator.state import table_holds", "kafka may import"),
        ("translator.state.table_holds", "from translator.service import pipeline", "state may import"),
        ("translator.service.app", "from translator.operations import audit", "service may import"),
        ("translator.service.app", "from translator.commands import run", "service may import"),
        ("translator.service.delivery.at_least_once", "import faust", "only translator.kafka.oauth"),
        ("translator.service.probes", "from mode import Service", "only translator.kafka.oauth"),
        ("translator.commands.run", "from aiokafka.errors import KafkaError", "only translator.kafka.oauth"),
        ("translator.commands.check", "import confluent_kafka.admin", "know Kafka"),
        ("translator.helpers", "from translator import errors", "has no place among the rooms"),
        ("translator.commands.run", "import spark_sink.job", "neither program knows the other"),
        ("translator.commands.run", "from dev.servers.broker import Broker", "not shipped"),
        ("spark_sink.model.fold", "from translator.values import converter", "neither program knows the other"),
        ("spark_sink.model.fold", "from spark_sink.schema import evolution", "model may import errors, signals"),
        ("spark_sink.events.images", "from spark_sink.tables import protocols", "events may import"),
        ("spark_sink.tables.delta.ddl", "from spark_sink.apply import driver", "tables may import"),
        ("spark_sink.apply.worker", "from spark_sink.operations import resume", "apply may import"),
        ("spark_sink.job", "from cdc_core.config import load", "only the settings"),
        ("spark_sink.schema.evolution", "from pyspark.sql import types", "without a Spark session"),
        ("spark_sink.model.row", "if TYPE_CHECKING:\n    import pyspark", "without a Spark session"),
        ("spark_sink.apply.driver", "from pyspark.sql import DataFrame", "without a Spark session"),
        ("spark_sink.operations.resume", "from pyspark.sql import DataFrame", "without a Spark session"),
    ],
)
def test_the_checker_sees(module: str, source: str, reason: str) -> None:
    """The report of a violation states the rule that the module breaks."""
    (broken,) = violations(module, source)
    assert broken.startswith(f"{module} imports ")
    assert reason in broken


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cdc_core.config", "from cdc_core.errors import ConfigError"),
        ("cdc_core.reader.spark", "from pyspark.sql import DataFrame"),
        ("translator.errors", "from __future__ import annotations"),
        ("translator.errors", "from cdc_core.errors import quote"),
        ("translator.message", "from cdc_core.envelope import Tx"),
        ("translator.config.settings", "from cdc_core import config"),
        ("translator.dialects.canal.rows", "from .profile import detect"),
        ("translator.dialects.canal.rows", "from translator.dialects._json import parse"),
        ("translator.dialects.canal.rows", "from .._json import parse"),
        ("translator.service.faust_transport", "import faust, mode, aiokafka"),
        ("translator.service.delivery.at_least_once", "from confluent_kafka import Producer"),
        ("translator.commands.run", "from translator.service.app import build"),
        ("spark_sink.config.settings", "from cdc_core.config import parse"),
        ("spark_sink.events.wire_format", "from cdc_core.envelope import avro_schema"),
        ("spark_sink.apply.spark_runner", "from pyspark.sql import DataFrame"),
        ("spark_sink.apply.worker", "from .rejects import RejectedEvents"),
    ],
)
def test_the_checker_allows(module: str, source: str) -> None:
    """An import in the allowed direction is not a violation."""
    assert [] == violations(module, source)


def test_the_checker_resolves_packages() -> None:
    """In an `__init__.py`, one dot means the package itself."""
    assert [] == violations("translator.dialects", "from .canal import Canal", package=True)
    assert [] == violations("translator.dialects.canal", "from .rows import read", package=True)
    (broken,) = violations("translator.dialects.canal", "from ..qlik import Qlik", package=True)
    assert broken.startswith("translator.dialects.canal imports translator.dialects.qlik.Qlik: ")
