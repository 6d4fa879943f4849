"""The configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_core.kafka_settings import librdkafka_options
from cdc_core.table_id import TableId
from spark_sink.config.settings import load, parse
from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError
from spark_sink.schema.engine_choice import Engine, EngineRules
from spark_sink.schema.evolution import DEFAULTS, Policy, ShapeChange
from spark_sink.schema.table_spec import Format, Mode, TableSpec

SAMPLE = Path(__file__).parents[3] / "docs" / "sink.yaml"

MINIMAL = """
pipeline: shop
kafka: {bootstrap_servers: "localhost:9092"}
tables: {warehouse: /warehouse}
checkpoint: /checkpoint
"""


def test_the_sample_is_valid() -> None:
    """The sample file of the documentation is valid."""
    assert "cdc.canonical.schemas" == load(SAMPLE, {"KAFKA_PASSWORD": "x"}).input.schemas


def test_defaults() -> None:
    """Four settings are sufficient."""
    settings = parse(MINIMAL, {}, "sink.yaml")
    assert ("cdc.canonical", "cdc.canonical.schemas") == (settings.input.topic, settings.input.schemas)
    assert {"kafka.bootstrap.servers": "localhost:9092", "kafka.security.protocol": "PLAINTEXT"} == (
        settings.kafka.spark_options()
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("batches: {trigger_second: 5}", "unknown setting 'trigger_second' (did you mean trigger_seconds?)"),
        ("chekpoint: x", "unknown setting 'chekpoint' (did you mean checkpoint?)"),
        ("batches: {max_offsets: 0}", "batches.max_offsets: "),
        ("batches: {target_seconds: 0, worker_megabytes: 1}", "batches.target_seconds: "),
        ("spark: {memory: '${NOT_SET}'}", "environment variable NOT_SET is not set"),
        ("[", "not YAML"),
        ("pipeline: other", "line 6: duplicate key 'pipeline', first used on line 2"),
    ],
)
def test_mistakes(line: str, said: str) -> None:
    """An error states the place of the mistake and the closest known name."""
    with pytest.raises(ConfigError) as caught:
        parse(MINIMAL + line, {}, "sink.yaml")
    assert said in str(caught.value)


ICEBERG = MINIMAL.replace("warehouse: /warehouse", "warehouse: /warehouse, formats: {'sales.*': iceberg}")
IN_CATALOG = ICEBERG.replace("formats:", "iceberg_catalog: {type: rest, uri: 'http://catalog', name: lake}, formats:")


def test_formats() -> None:
    """A table is a Delta table by default. An Iceberg table only has to be listed."""
    rules = parse(ICEBERG, {}, "sink.yaml").tables.rules
    assert (Format.ICEBERG, Format.DELTA) == (rules.form("Sales.orders").format, rules.form("hr.emp").format)
    assert parse(IN_CATALOG + "catalog: {name: for_delta}", {}, "sink.yaml").has_iceberg


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ICEBERG.replace("iceberg", "hudi"), "expected delta or iceberg"),
        (ICEBERG.replace("warehouse: /warehouse", "warehouse: 's3://lake'"), "can only be written to local folders"),
        (
            ICEBERG + "catalog: {}",
            "would always appear in the catalog as they were when registered",
        ),
        (IN_CATALOG + "catalog: {name: lake}", "are both lake, but Delta and Iceberg tables need separate catalogs"),
    ],
)
def test_where_iceberg_tables_are_not_there_yet(text: str, said: str) -> None:
    """Unsupported combinations are rejected before the sink starts."""
    with pytest.raises(ConfigError) as caught:
        parse(text, {}, "sink.yaml")
    assert said in str(caught.value)


def test_no_error_shows_a_secret(tmp_path: Path) -> None:
    """The error for an unclosed quote or foreign bytes after a password has the place but not the password."""
    with pytest.raises(ConfigError) as caught:
        parse(MINIMAL + 'login: {sasl_password: "correct horse\n', {}, "sink.yaml")
    assert "a quoted scalar that begins in line 6" in str(caught.value)
    assert "correct horse" not in str(caught.value)
    path = tmp_path / "sink.yaml"
    path.write_bytes(MINIMAL.encode() + b"# \xe4")
    with pytest.raises(ConfigError, match=rf"^cannot read {path}: byte {len(MINIMAL) + 2} is not valid UTF-8$"):
        load(path, {})


def test_a_column_named_no() -> None:
    """NO is a name and not a boolean."""
    text = MINIMAL.replace("warehouse: /warehouse", "warehouse: /w, keys: {hr.emp: [NO, ON]}")
    assert ("NO", "ON") == parse(text, {}, "sink.yaml").tables.rules.form("hr.emp").key


def test_rules_of_tables() -> None:
    """Unset rules have the default values that the code defines once."""
    assert TableRules() == parse(MINIMAL, {}, "sink.yaml").tables.rules
    tables = "tables: {warehouse: /w, truncate: all_scopes, tombstone_days: 30, changes: {add: fail, key: ignore}}"
    rules = parse(MINIMAL.replace("tables: {warehouse: /warehouse}", tables), {}, "sink.yaml").tables.rules
    assert TableRules(True, 30, DEFAULTS | {ShapeChange.ADD: Policy.FAIL, ShapeChange.KEY: Policy.IGNORE}) == rules


def test_engines_of_tables() -> None:
    """Patterns keep the order of the file. The error for an unknown engine lists the known ones."""
    tables = "warehouse: /w, engines: {'*.log': fused, 'shop_*': spark}, fused_megabytes: 5"
    rules = parse(MINIMAL.replace("warehouse: /warehouse", tables), {}, "sink.yaml").tables.rules
    assert EngineRules({"*.log": Engine.FUSED, "shop_*": Engine.SPARK}, 5) == rules.engines
    assert ["*.log", "shop_*"] == list(rules.engines.named)
    with pytest.raises(ConfigError, match=r"tables\.engines\.a: .*fused or spark"):
        parse(MINIMAL.replace("warehouse: /warehouse", "warehouse: /w, engines: {a: flink}"), {}, "sink.yaml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("{rename: fail}", "tables.changes.rename"),
        ("{add: sometimes}", "tables.changes.add"),
        ("{key: lenient}", "key: only fail and ignore are allowed"),
    ],
)
def test_mistakes_in_changes(changes: str, said: str) -> None:
    """Kinds and policies are closed lists. No policy for keys can mix two keys."""
    with pytest.raises(ConfigError) as caught:
        parse(MINIMAL.replace("warehouse: /warehouse", f"warehouse: /w, changes: {changes}"), {}, "sink.yaml")
    assert said in str(caught.value)


def test_soft_deletes() -> None:
    """One setting enables soft deletes for all mirrors."""
    tables = "{warehouse: /w, deletes: soft}"
    assert parse(MINIMAL.replace("{warehouse: /warehouse}", tables), {}, "sink.yaml").tables.rules.soft_deletes


def test_forms_of_tables() -> None:
    """A table's mode comes from its name or else from the first matching pattern. Matching ignores case."""
    tables = """{warehouse: /w, modes: {"*.Audit": changelog, "shop_*": mirror, shop_x.audit: mirror},
        keys: {"*.orders": [id, line]}, shared: {"shop_*": ["shop/*"]}}"""
    rules = parse(MINIMAL.replace("{warehouse: /warehouse}", tables), {}, "sink.yaml").tables.rules
    named = ("shop_x.orders", "Shop_x.AUDIT", "other.audit", "other.x")
    shared = TableSpec(shared=True)
    assert [shared._replace(key=("id", "line")), shared, TableSpec(Mode.CHANGELOG), TableSpec()] == list(
        map(rules.form, named)
    )
    assert [True, False] == [rules.shares("shop_x.orders", table) for table in ("shop/sales//orders", "shop2///orders")]


def test_single_tables() -> None:
    """Single tables can have their own names. Exclusions are case-sensitive patterns of source tables."""
    tables = "{warehouse: /w, rename: {erp/shop//Orders: erp_shop.orders_2}, exclude: [erp/*/audit_*]}"
    found = parse(MINIMAL.replace("{warehouse: /warehouse}", tables), {}, "sink.yaml").tables
    named = [TableId("erp", "shop", None, name) for name in ("Orders", "orders")]
    assert ["erp_shop.orders_2", "erp_shop.orders"] == [found.pattern.target(table) for table in named]
    assert [True, False] == [
        found.rules.excludes(TableId("erp", "shop", None, name)) for name in ("audit_log", "Audit_log")
    ]


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("rename: {a/b//c: '_cdc.x'}", "tables.rename.a/b//c: a table name can contain letters"),
        ("rename: {a/b//c: '../x'}", "tables.rename.a/b//c: "),
        ("rename: {a/b//c: 'x y'}", "tables.rename.a/b//c: "),
        ("rename: {a/b//c: 'x..y'}", "tables.rename.a/b//c: "),
        ("rename: {'a/b//[cd]': x}", "tables.rename.a/b//[cd]: expected"),
        ("exclude: ['a/b//[cd]']", "tables.exclude[0]: "),
        (
            "rename: {a/b//c: x, a/b//d: X}",
            "a/b//c and a/b//d would both be named X; if this is intended, declare the table in tables.shared",
        ),
    ],
)
def test_mistakes_in_single_tables(said: str, place: str) -> None:
    """A name must be one that the pattern could produce, and belong to one table unless it is declared as shared."""
    with pytest.raises(ConfigError) as caught:
        parse(MINIMAL.replace("warehouse: /warehouse", f"warehouse: /w, {said}"), {}, "sink.yaml")
    assert place in str(caught.value)
    shared = "warehouse: /w, rename: {a/b//c: x, a/b//d: X}, shared: {x: [a/b//c, a/b//d]}"
    parse(MINIMAL.replace("warehouse: /warehouse", shared), {}, "sink.yaml")


@pytest.mark.parametrize(("name", "said"), [("modes", "upsert"), ("keys", "[]"), ("keys", "['']")])
def test_mistakes_in_forms(name: str, said: str) -> None:
    """Modes are a closed list, and a key has columns."""
    with pytest.raises(ConfigError) as caught:
        parse(MINIMAL.replace("warehouse: /warehouse", f"warehouse: /w, {name}: {{x: {said}}}"), {}, "sink.yaml")
    assert f"tables.{name}.x" in str(caught.value)


def test_both_clients_log_in() -> None:
    """One login works for Spark's client and librdkafka, whatever the password contains, and is not shown."""
    login = "{bootstrap_servers: b, security_protocol: SASL_SSL, sasl_mechanism: PLAIN, "
    login += "sasl_username: u, sasl_password: '${P}'}"
    text = MINIMAL.replace('{bootstrap_servers: "localhost:9092"}', login)
    settings = parse(text, {"P": 'a"b\\c'}, "sink.yaml")
    assert 'a"b\\c' == librdkafka_options(settings.kafka)["sasl.password"]
    assert settings.kafka.spark_options()["kafka.sasl.jaas.config"].endswith(r'username="u" password="a\"b\\c";')
    assert 'a"b' not in repr(settings)


@pytest.mark.parametrize(
    ("master", "valid"),
    [
        *((master, True) for master in ("local", "local[2]", "local[*]", "spark://h:7077", "k8s://https://k", "yarn")),
        *((master, False) for master in ("locl[2]", "local[0]", "local[x]", "localhost", "")),
    ],
)
def test_the_master(master: str, valid: bool) -> None:
    text = f"{MINIMAL}spark: {{master: '{master}'}}\n"
    if valid:
        assert master == parse(text, {}, "sink.yaml").spark.master
        return
    with pytest.raises(ConfigError, match=r"spark\.master"):
        parse(text, {}, "sink.yaml")
