"""Arrows point one way: who may import whom, held by walking the imports of every file."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("translator", "spark_sink")
PRODUCTS = ("cdc_core", *PROGRAMS)

CORE = frozenset({"errors", "options", "message", "envelope", "values"})

# Unit of `translator` (a module or folder at its top) -> the other units that it may import.
ALLOWED: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "options": frozenset({"errors"}),
    "envelope": frozenset(),
    "message": frozenset({"errors", "envelope"}),
    "values": frozenset({"errors", "message", "envelope"}),
    "dialects": CORE,
    "codecs": CORE,
    # The options of a dialect stand beside the dialect; Limits and the like are types of the core.
    "services": frozenset(),
    "settings": frozenset({"errors", "message", "envelope", "dialects", "services"}),
    "dead_letter": CORE | {"codecs"},
    "native_order": frozenset({"errors", "message", "envelope"}),
    "translate": CORE | {"dialects", "codecs", "dead_letter", "native_order"},
    "guards": CORE | {"dialects", "codecs", "dead_letter", "translate"},
    "catalog": CORE | {"dialects", "codecs", "dead_letter", "translate"},
    "runtime": CORE
    | {"dialects", "codecs", "dead_letter", "native_order", "translate", "guards", "catalog", "settings"},
    "commands": CORE | {"dialects", "codecs", "dead_letter", "translate", "guards", "catalog", "settings", "runtime"},
    "__main__": frozenset({"commands"}),
}

# These do no I/O: what they need to look up arrives as a callable.
PURE = CORE | {"dialects", "codecs", "dead_letter", "native_order", "translate", "guards"}
IO_LIBRARIES = frozenset({"aiohttp", "asyncio", "http", "httpx2", "requests", "socket", "ssl", "subprocess", "urllib"})

STREAM_LIBRARIES = frozenset({"faust", "mode", "aiokafka"})
STREAM_MODULES = frozenset({"translator.runtime.app", "translator.runtime.tokens", "translator.runtime.transport"})

DECISIONS_WITHOUT_SPARK = frozenset({"spark_sink.evolve"})


def violations(module: str, source: str, *, package: bool = False) -> list[str]:
    """What the imports of one module break, in words; `package` when the source is an `__init__.py`."""
    broken = []
    for imported in _imports(module, source, package=package):
        reasons = (rule(module, imported) for rule in RULES)
        broken += [f"{module} imports {imported}: {reason}" for reason in reasons if reason]
    return broken


def _empty_front_doors(module: str, imported: str) -> str | None:
    if module in PRODUCTS:
        return "the package's __init__ imports nothing, so that any part of it loads alone"
    return None


def _one_way(module: str, imported: str) -> str | None:
    importer, target = module.split("."), imported.split(".")
    if importer[0] != "translator" or target[0] != "translator" or len(importer) < 2:
        return None
    unit, wanted = importer[1], (target[1:] or ["the package itself"])[0]
    if unit not in ALLOWED:
        return f"{unit} has no place among the layers; give it one in this test"
    if wanted != unit and wanted not in ALLOWED[unit]:
        return f"{unit} may import {', '.join(sorted(ALLOWED[unit])) or 'nothing of ours'}"
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


def _kafka_in_the_runtime(module: str, imported: str) -> str | None:
    outside = module.split(".")[0] == "translator" and module.split(".")[1:2] != ["runtime"]
    if outside and imported.split(".")[0] == "confluent_kafka":
        return "only translator.runtime knows Kafka"
    return None


def _no_io_inside(module: str, imported: str) -> str | None:
    importer = module.split(".")
    pure = importer[0] == "translator" and importer[1:2] and importer[1] in PURE
    if pure and imported.split(".")[0] in IO_LIBRARIES:
        return f"{importer[1]} does no I/O; what it looks up arrives as a callable"
    return None


def _sink_knows_the_envelope_only(module: str, imported: str) -> str | None:
    target = imported.split(".")
    if module.split(".")[0] == "spark_sink" and target[0] == "translator" and target[1:2] != ["envelope"]:
        return "of the translator, the sink knows the envelope only"
    return None


def _translator_does_not_know_the_sink(module: str, imported: str) -> str | None:
    if module.split(".")[0] == "translator" and imported.split(".")[0] == "spark_sink":
        return "the translator runs without the sink"
    return None


def _core_knows_no_program(module: str, imported: str) -> str | None:
    if module.split(".")[0] == "cdc_core" and imported.split(".")[0] in PROGRAMS:
        return "what both programs share knows neither"
    return None


def _files_are_read_by_settings(module: str, imported: str) -> str | None:
    loader = imported.split(".")[:2] == ["cdc_core", "config"]
    program, *inside = module.split(".")
    if loader and program in PROGRAMS and inside != ["settings"]:
        return "only the settings of a program are read from a file"
    return None


def _no_spark_in_decisions(module: str, imported: str) -> str | None:
    if module in DECISIONS_WITHOUT_SPARK and imported.split(".")[0] in {"pyspark", "py4j"}:
        return "it decides without a Spark session, and is tested without one"
    return None


def _product_without_workshop(module: str, imported: str) -> str | None:
    if imported.split(".")[0] in {"dev", "tests", "bench"}:
        return "dev, tests and bench are not shipped"
    return None


RULES = (
    _empty_front_doors,
    _one_way,
    _no_sibling_dialects,
    _stream_libraries_at_the_edge,
    _kafka_in_the_runtime,
    _no_io_inside,
    _sink_knows_the_envelope_only,
    _translator_does_not_know_the_sink,
    _core_knows_no_program,
    _files_are_read_by_settings,
    _no_spark_in_decisions,
    _product_without_workshop,
)


def _imports(module: str, source: str, *, package: bool) -> Iterator[str]:
    """Full names of all that is imported anywhere in the source: in functions and for type checking too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from . import x` counts from the package: for an __init__.py, that is the module itself.
            above = module.split(".")[: None if package and node.level == 1 else int(package) - node.level]
            base = ".".join([*(above if node.level else []), *([node.module] if node.module else [])])
            if base != "__future__":
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _modules() -> Iterator[tuple[str, Path]]:
    for product in PRODUCTS:
        for path in sorted((ROOT / product).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if path.name == "__init__.py" else parts), path


@pytest.mark.parametrize(("module", "path"), [pytest.param(*found, id=found[0]) for found in _modules()])
def test_every_module_keeps_the_layers(module: str, path: Path) -> None:
    """No file of the products imports what its layer may not know."""
    assert [] == violations(module, path.read_text(encoding="utf-8"), package=path.name == "__init__.py")


def test_there_is_something_to_check() -> None:
    """The walk finds the products: an empty walk would pass everything."""
    assert "translator.envelope" in dict(_modules())


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("translator", "import os", "imports nothing"),
        ("spark_sink", "from spark_sink.job import run", "imports nothing"),
        ("translator.envelope", "from translator.errors import Stop", "envelope may import nothing of ours"),
        ("translator.errors", "import translator.message", "errors may import nothing of ours"),
        ("translator.message", "from translator.values import converter", "message may import envelope, errors"),
        ("translator.values", "from .dialects import canal", "values may import"),
        ("translator.dialects.canal", "from translator.dialects.shareplex import decode", "siblings"),
        ("translator.dialects.canal", "from translator.dialects import shareplex", "siblings"),
        ("translator.dialects.canal.rows", "from ..qlik import masks", "siblings"),
        ("translator.dialects.canal.rows", "from translator.dialects import DIALECTS", "siblings"),
        ("translator.dialects._json", "from translator.dialects.canal import Canal", "siblings"),
        ("translator.dialects.qlik", "def f():\n    import translator.runtime.registry", "dialects may import"),
        ("translator.dialects.qlik", "import urllib.request", "does no I/O"),
        ("translator.dialects.qlik", "from confluent_kafka import Message", "only translator.runtime knows Kafka"),
        ("translator.translate", "from translator.catalog import Catalog", "translate may import"),
        ("translator.translate", "from translator.settings import Settings", "translate may import"),
        ("translator.catalog", "from translator.settings import Settings", "catalog may import"),
        ("translator.settings", "from translator.runtime import app", "settings may import"),
        ("translator.runtime.app", "from translator.commands import run", "runtime may import"),
        ("translator.runtime.delivery", "import faust", "only translator.runtime.app"),
        ("translator.runtime.web", "from mode import Service", "only translator.runtime.app"),
        ("translator.commands.run", "from aiokafka.errors import KafkaError", "only translator.runtime.app"),
        ("translator.commands.check", "import confluent_kafka.admin", "only translator.runtime knows Kafka"),
        ("translator.helpers", "from translator import errors", "has no place among the layers"),
        ("translator.errors", "from translator import VERSION", "errors may import nothing of ours"),
        ("translator.commands.run", "import spark_sink.job", "runs without the sink"),
        ("translator.commands.run", "from dev.broker import Broker", "not shipped"),
        ("spark_sink.fold", "from translator.values import converter", "the envelope only"),
        ("spark_sink.fold", "import translator", "the envelope only"),
        ("cdc_core", "from cdc_core import config", "imports nothing"),
        ("cdc_core.config", "from translator.errors import ConfigError", "knows neither"),
        ("cdc_core.config", "import spark_sink.settings", "knows neither"),
        ("translator.message", "from cdc_core import config", "only the settings"),
        ("spark_sink.job", "from cdc_core.config import load", "only the settings"),
        ("spark_sink.evolve", "from pyspark.sql import types", "without a Spark session"),
        ("spark_sink.evolve", "if TYPE_CHECKING:\n    import pyspark", "without a Spark session"),
    ],
)
def test_the_checker_sees(module: str, source: str, reason: str) -> None:
    """A module that breaks a rule is told which."""
    (broken,) = violations(module, source)
    assert broken.startswith(f"{module} imports ")
    assert reason in broken


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("translator.message", "from translator.envelope import Tx"),
        ("translator.dialects.canal.rows", "from .profile import detect"),
        ("translator.dialects.canal.rows", "from translator.dialects._json import parse"),
        ("translator.dialects.canal.rows", "from .._json import parse"),
        ("translator.runtime.transport", "import faust, mode, aiokafka"),
        ("translator.runtime.delivery", "from confluent_kafka import Producer"),
        ("translator.commands.run", "from translator.runtime.app import build"),
        ("spark_sink.read", "from translator.envelope import avro_schema"),
        ("spark_sink.read", "from translator import envelope"),
        ("spark_sink.apply", "from pyspark.sql import DataFrame"),
        ("cdc_core.config", "from cdc_core.errors import ConfigError"),
        ("translator.errors", "from cdc_core.errors import quote"),
        ("translator.settings", "from cdc_core import config"),
        ("spark_sink.settings", "from cdc_core.config import parse"),
        ("translator.errors", "from __future__ import annotations"),
    ],
)
def test_the_checker_allows(module: str, source: str) -> None:
    """An import along the arrows is no violation."""
    assert [] == violations(module, source)


def test_the_checker_resolves_packages() -> None:
    """In an `__init__.py` one dot means the package itself."""
    assert [] == violations("translator.dialects", "from .canal import Canal", package=True)
    assert [] == violations("translator.dialects.canal", "from .rows import read", package=True)
    (broken,) = violations("translator.dialects.canal", "from ..qlik import Qlik", package=True)
    assert broken.startswith("translator.dialects.canal imports translator.dialects.qlik.Qlik: ")
