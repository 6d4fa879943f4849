"""All mistakes in the configuration are reported at the start, with the closest known names."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from translator.config.settings import InputLimits, Settings, load, parse
from translator.dialects import DIALECTS
from translator.errors import ConfigError
from translator.kafka.subscription import resolve
from translator.message import DeclaredTable, Limits

SMALLEST = """
kafka: {bootstrap_servers: "localhost:9092"}
sources:
  - {name: shop, dialect: canal, topics: [raw.shop]}
"""


def settings_with(**changes: Any) -> Settings:
    """Return the minimal configuration with sections replaced."""
    return parse(yaml.safe_dump({**yaml.safe_load(SMALLEST), **changes}, sort_keys=False), {}, "config.yaml")


def mistakes(text: str, environment: dict[str, str] | None = None) -> list[str]:
    """Return the error lines for a configuration, without the file name."""
    with pytest.raises(ConfigError) as caught:
        parse(text, environment or {}, "config.yaml")
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("config.yaml:")
    told = [re.sub(r"^ *line \d+: (?!duplicate)", "", line).strip() for line in rest]
    return told or [first.removeprefix("config.yaml: ")]


def mistakes_with(**changes: Any) -> list[str]:
    """Return the error lines for the minimal configuration with sections replaced."""
    return mistakes(yaml.safe_dump({**yaml.safe_load(SMALLEST), **changes}, sort_keys=False))


def source(**changes: Any) -> dict[str, Any]:
    """Return a source as written in the file."""
    return {"name": "shop", "dialect": "canal", "topics": ["raw.shop"], **changes}


def projection(topic: str) -> dict[str, Any]:
    """Return a projection as written in the file."""
    return {"topic": topic, "codec": "debezium"}


class TestDefaults:
    def test_smallest(self) -> None:
        """Brokers and one source are enough. Everything else has the default stated in the design."""
        settings = parse(SMALLEST, {}, "config.yaml")
        assert ("cdc-translator", "avro", "PLAINTEXT") == (
            settings.group,
            settings.output.codec,
            settings.kafka.security_protocol,
        )
        assert ("cdc.canonical", "cdc.canonical.schemas", "cdc.canonical.metadata", "cdc.canonical.dlq") == (
            settings.output.topic,
            settings.output.schemas_topic,
            settings.output.metadata_topic,
            settings.output.dead_letter_topic,
        )

    def test_limits(self) -> None:
        """The limits of the configuration match those of the core by name and number."""
        assert Limits() == InputLimits().limits()
        assert list(Limits.__struct_fields__) == list(InputLimits.model_fields)

    def test_design_limits(self) -> None:
        """The defaults match the design, because operators rely on them."""
        limits = Limits()
        assert (8 * 1024 * 1024, 64, 5_000, 10_000, 1024 * 1024, 64) == (
            limits.value_bytes,
            limits.json_depth,
            limits.columns,
            limits.rows,
            limits.schema_text_bytes,
            limits.schema_depth,
        )

    def test_tables(self) -> None:
        """A declared table reaches the dialect as written, with its columns in order."""
        table = {"table": "OWNER.*", "key": ["B", "A"], "columns": {"B": "int32", "A": "decimal(9,2)"}}
        (found,) = settings_with(sources=[source(tables=[table])]).sources[0].tables
        declared = found.declared()
        assert DeclaredTable("OWNER.*", ("B", "A"), {"B": "int32", "A": "decimal(9,2)"}) == declared
        assert ["B", "A"] == list(declared.columns or {})

    def test_frozen(self) -> None:
        """Settings are read once and are immutable."""
        with pytest.raises(ValueError, match="frozen"):
            parse(SMALLEST, {}, "config.yaml").group = "other"


class TestTypos:
    @pytest.mark.parametrize(
        ("changes", "place", "meant"),
        [
            ({"grup": "x"}, "grup", "unknown setting 'grup' (did you mean group?)"),
            ({"kafka": {"bootstrap_server": "b:1"}}, "kafka.bootstrap_server", "(did you mean bootstrap_servers?)"),
            ({"output": {"topc": "x"}}, "output.topc", "(did you mean topic?); allowed: codec, exclude, incl"),
            (
                {"projections": [{"topc": "x"}]},
                "projections[0].topc",
                "(did you mean topic?); allowed: codec, config",
            ),
            ({"sources": [source(nmae="x")]}, "sources[0] (shop).nmae", "(did you mean name?)"),
            (
                {"sources": [source(tables=[{"table": "T", "colums": {}}])]},
                "sources[0] (shop).tables[0].colums",
                "(did you mean columns?); allowed: columns, key, table",
            ),
            ({"limits": {"json_dept": 1}}, "limits.json_dept", "(did you mean json_depth?)"),
            ({"timing": {"zzz": 1}}, "timing.zzz", "unknown setting 'zzz'; allowed: broker_wait, commit_interval,"),
        ],
    )
    def test_suggestion(self, changes: dict[str, Any], place: str, meant: str) -> None:
        """An unknown name is reported with its place, the closest match and all allowed names."""
        found = next(line for line in mistakes_with(**changes) if line.startswith(f"{place}: "))
        assert meant in found

    def test_all_at_once(self) -> None:
        """One error reports every mistake in the file."""
        text = """
kafka: {bootstrap_servers: [], security_protocol: TLS}
outptu: {}
sources:
  - {name: "a b", dialect: canal, topics: []}
web: {port: 70000}
"""
        places = [line.partition(":")[0] for line in mistakes(text)]
        assert {
            "kafka.bootstrap_servers",
            "kafka.security_protocol",
            "outptu",
            "sources[0] (a b).name",
            "sources[0] (a b).topics",
            "web.port",
        } == set(places)
        assert len(set(places)) == len(places)


class TestEnvironment:
    def test_interpolated(self) -> None:
        """`${NAME}` in any string is replaced, even within a text and repeatedly."""
        text = SMALLEST.replace("localhost:9092", "${HOST}:${PORT},${HOST}:2")
        settings = parse(text, {"HOST": "broker", "PORT": "1", "UNUSED": "x"}, "config.yaml")
        assert "broker:1,broker:2" == settings.kafka.bootstrap_servers

    def test_number(self) -> None:
        """A number can come from the environment too."""
        settings = parse(SMALLEST + "web: {port: '${PORT}'}\n", {"PORT": "9"}, "config.yaml")
        assert 9 == settings.web.port

    def test_unset(self) -> None:
        """An unset variable is reported and does not become an empty string."""
        text = SMALLEST.replace("localhost:9092", "${CDC_BROKERS}")
        assert ["environment variable CDC_BROKERS is not set"] == mistakes(text, {"CDC_BROKER": "x"})

    def test_empty(self) -> None:
        """A variable with an empty value is an empty string, not unset."""
        assert "" == parse(SMALLEST.replace("localhost:9092", "${B}"), {"B": ""}, "c").kafka.bootstrap_servers

    @pytest.mark.parametrize("value", ["a, topics: [x]", "a\nweb: {port: 1}", "[a, b]", "${OTHER}", "# x", "'", "*a"])
    def test_a_value_stays_a_value(self, value: str) -> None:
        """A variable's value can neither change the structure of the file nor contain variables."""
        settings = parse(SMALLEST.replace("localhost:9092", "${B}"), {"B": value, "OTHER": "no"}, "config.yaml")
        assert value == settings.kafka.bootstrap_servers

    def test_not_in_names(self) -> None:
        """Names of settings cannot come from the environment."""
        assert ["${GROUP}: unknown setting '${GROUP}'"] == [
            line.partition(";")[0].partition(" (")[0]
            for line in mistakes(SMALLEST + "${GROUP}: x\n", {"GROUP": "group"})
        ]

    def test_options(self) -> None:
        """Variables work in dialect options as everywhere else."""
        settings = parse(
            SMALLEST.replace("raw.shop]", "raw.shop], options: {a: [{b: '${X}'}]}"), {"X": "dts"}, "config.yaml"
        )
        assert {"a": [{"b": "dts"}]} == settings.sources[0].options


LOGIN = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "u", "sasl_password": "correct horse"}
TOKENS = {
    "sasl_mechanism": "OAUTHBEARER",
    "oauth_token_url": "https://identity/token",
    "oauth_client_id": "u",
    "oauth_client_secret": "correct horse",
}
PROVIDER = {"sasl_mechanism": "OAUTHBEARER", "oauth_provider": "msk-iam"}
CERTIFICATE = {"ssl_certificate_file": "c.pem", "ssl_key_file": "k.pem"}


def without(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in given.items() if other != name}


class TestSecurity:
    @pytest.mark.parametrize(
        "kafka",
        [
            {},
            {"security_protocol": "SSL"},
            {"security_protocol": "SSL", "ssl_ca_file": "ca.pem"},
            {"security_protocol": "SSL", **CERTIFICATE},
            {"security_protocol": "SSL", **CERTIFICATE, "ssl_key_password": "correct horse"},
            {"security_protocol": "SASL_PLAINTEXT", **LOGIN},
            {"security_protocol": "SASL_SSL", "ssl_ca_file": "ca.pem", **LOGIN},
            {"security_protocol": "SASL_SSL", **LOGIN, **CERTIFICATE},
            {"security_protocol": "SASL_SSL", **TOKENS},
            {"security_protocol": "SASL_SSL", **TOKENS, "oauth_scope": "a b", "oauth_ca_file": "ca.pem"},
            {"security_protocol": "SASL_SSL", **PROVIDER},
            {"security_protocol": "SASL_SSL", **PROVIDER, "oauth_provider_options": {"region": "eu-west-1"}},
        ],
    )
    def test_complete(self, kafka: dict[str, Any]) -> None:
        """Each protocol is valid with the settings that it needs."""
        found = settings_with(kafka={"bootstrap_servers": "b:1", **kafka}).kafka
        assert kafka.get("security_protocol", "PLAINTEXT") == found.security_protocol

    @pytest.mark.parametrize(
        ("kafka", "reason"),
        [
            ({"security_protocol": "SASL_SSL"}, "security_protocol SASL_SSL requires sasl_mechanism"),
            *[
                (
                    {"security_protocol": "SASL_SSL", **without(given, name)},
                    f"sasl_mechanism {given['sasl_mechanism']} requires {name}",
                )
                for given in (LOGIN, TOKENS)
                for name in given
                if name != "sasl_mechanism"
            ],
            (
                {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
                "requires oauth_token_url, oauth_client_id and oauth_client_secret (or oauth_provider)",
            ),
            (
                {"security_protocol": "SASL_SSL", **TOKENS, **PROVIDER},
                "oauth_token_url, oauth_client_id and oauth_client_secret set, but a login with a token provider does "
                "not use it",
            ),
            (
                {"security_protocol": "SASL_SSL", **without(PROVIDER, "oauth_provider"), "oauth_provider_options": {}},
                "a login with a token provider requires oauth_provider",
            ),
            (
                {"security_protocol": "SASL_SSL", **LOGIN, "oauth_provider": "msk-iam"},
                "oauth_provider set, but sasl_mechanism SCRAM-SHA-512 does not use it",
            ),
            ({"oauth_provider": "msk-iam"}, "oauth_provider set, but security_protocol is neither SASL_SSL nor"),
            (
                {"security_protocol": "SASL_SSL", **TOKENS, "sasl_password": "correct horse"},
                "sasl_password set, but sasl_mechanism OAUTHBEARER does not use it",
            ),
            (
                {"security_protocol": "SASL_SSL", **LOGIN, "oauth_scope": "a", "oauth_ca_file": "c"},
                "oauth_scope and oauth_ca_file set, but sasl_mechanism SCRAM-SHA-512 does not use it",
            ),
            (
                {"security_protocol": "SASL_SSL", **TOKENS, "oauth_token_url": "identity/token"},
                "oauth_token_url must begin with http:// or https:// and contain a host",
            ),
            (
                {"security_protocol": "SASL_SSL", **TOKENS, "oauth_token_url": "https://u:correct horse@identity"},
                "use oauth_client_id and oauth_client_secret instead",
            ),
            (
                {"security_protocol": "SASL_SSL", **TOKENS, "oauth_token_url": "http://i", "oauth_ca_file": "c"},
                "oauth_ca_file is set, but oauth_token_url does not begin with https://",
            ),
            (
                LOGIN,
                "sasl_mechanism, sasl_username and sasl_password set, "
                "but security_protocol is neither SASL_SSL nor SASL_PLAINTEXT",
            ),
            (
                {"security_protocol": "SSL", "sasl_username": "u"},
                "sasl_username set, but security_protocol is neither SASL_SSL nor SASL_PLAINTEXT",
            ),
            *[
                ({"security_protocol": "SSL", **without(CERTIFICATE, name)}, "ssl_key_file must be set together")
                for name in CERTIFICATE
            ],
            (
                {"security_protocol": "SSL", "ssl_key_password": "correct horse"},
                "ssl_key_password requires ssl_key_file",
            ),
            ({"ssl_ca_file": "ca.pem"}, "ssl_ca_file set, but security_protocol is neither SSL nor SASL_SSL"),
            (
                {"security_protocol": "SASL_PLAINTEXT", "ssl_ca_file": "ca.pem", **LOGIN},
                "ssl_ca_file set, but security_protocol is neither SSL nor SASL_SSL",
            ),
        ],
    )
    def test_contradiction(self, kafka: dict[str, Any], reason: str) -> None:
        """A partial login, or keys that the protocol would ignore, are rejected, so that nobody relies on them."""
        (found,) = mistakes_with(kafka={"bootstrap_servers": "b:1", **kafka})
        assert found.startswith("kafka: ")
        assert reason in found
        assert "correct horse" not in found

    @pytest.mark.parametrize("given", [LOGIN, TOKENS])
    def test_an_empty_secret_is_none(self, given: dict[str, str]) -> None:
        """A variable with an empty value is not a password."""
        name = next(name for name in given if name.endswith(("password", "secret")))
        (found,) = mistakes_with(kafka={"bootstrap_servers": "b:1", "security_protocol": "SASL_SSL", **given, name: ""})
        assert found.startswith(f"kafka.{name}: ")

    def test_secret_is_not_shown(self) -> None:
        """No printed form of the settings contains a password."""
        settings = settings_with(
            kafka={"bootstrap_servers": "b:1", "security_protocol": "SASL_SSL", **LOGIN},
        )
        assert settings.kafka.sasl_password is not None
        assert "correct horse" == settings.kafka.sasl_password.get_secret_value()
        for printed in (repr(settings), str(settings), settings.model_dump_json(), f"{settings.model_dump()}"):
            assert "correct horse" not in printed

    @pytest.mark.parametrize(
        "text",
        [
            SMALLEST.replace("9092", "9092', sasl_password: [correct horse]")
            .replace('"localhost', "'localhost")
            .replace('"}', "}"),
            SMALLEST.replace('9092"', '9092", security_protocol: PLAINTEXT, sasl_password: correct horse'),
            SMALLEST + "x: [correct horse\n",
            SMALLEST + 'x: "correct horse\n',
            SMALLEST + "x: correct horse: y\n",
        ],
        ids=["wrong type", "contradiction", "not closed", "quote", "not YAML"],
    )
    def test_secret_is_not_in_errors(self, text: str) -> None:
        """Errors do not quote nearby values."""
        assert "correct horse" in text
        assert "correct horse" not in "\n".join(mistakes(text))


class TestSources:
    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            (
                {"sources": [source(), source(name="till")]},
                "topic raw.shop is claimed by more than one source: shop and till",
            ),
            (
                {"sources": [source(topics=["erp.*"]), source(name="till", topics=["erp.*"])]},
                "topic erp.* is claimed by more than one source: shop and till",
            ),
            ({"sources": [source(topics=["a", "a"])]}, "source shop lists topic a twice"),
            ({"sources": [source(), source(topics=["b"])]}, "source name shop is used more than once"),
            (
                {"sources": [source(topics=["cdc.canonical"])]},
                "topic cdc.canonical cannot be both an input and an output",
            ),
            (
                {"sources": [source(topics=["cdc.canonical.dlq"])]},
                "topic cdc.canonical.dlq cannot be both an input and an output",
            ),
            (
                {"output": {"topic": "x"}, "sources": [source(topics=["x.schemas"])]},
                "topic x.schemas cannot be both an input and an output",
            ),
            (
                {"output": {"topic": "x"}, "sources": [source(topics=["x.metadata"])]},
                "topic x.metadata cannot be both an input and an output",
            ),
            ({"projections": [projection("raw.shop")]}, "topic raw.shop cannot be both an input and an output"),
            ({"projections": [projection("cdc.canonical")]}, "output topic cdc.canonical is used more than once"),
            (
                {"projections": [projection("cdc.canonical.dlq")]},
                "output topic cdc.canonical.dlq is used more than once",
            ),
            ({"projections": [projection("p"), projection("p")]}, "output topic p is used more than once"),
            ({"projections": [projection("a/b")]}, "projections[0].topic: "),
            ({"projections": [{"topic": "p"}]}, "projections[0].codec: "),
            ({"sources": [source(metadata_topics=["meta"])]}, "metadata topic meta is not listed in topics"),
            ({"sources": []}, "sources: "),
            ({"sources": [source(topics=[])]}, "sources[0] (shop).topics: "),
            ({"sources": [source(name="a/b")]}, "sources[0] (a/b).name: "),  # a slash would make ids ambiguous
            ({"sources": [source(topics=["a/b"])]}, "sources[0] (shop).topics[0]: "),
            ({"sources": [source(topics=["a[bc]"])]}, "sources[0] (shop).topics[0]: "),
            ({"sources": [source(topics=["raw.*"], metadata_topics=["meta"])]}, "metadata topic meta is not listed in"),
            ({"sources": [source(epochs=["2026-01-01T00:00:00Z"])]}, "epochs and task require order: native"),
            ({"sources": [source(task="t")]}, "epochs and task require order: native"),
            ({"sources": [source(order="natural")]}, "sources[0] (shop).order: "),
            (
                {"sources": [source(order="native", epochs=["2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"])]},
                "epochs must be in ascending order",
            ),
            ({"sources": [source(order="native", epochs=["2026-01-01T00:00:00"])]}, "sources[0] (shop).epochs[0]: "),
        ],
    )
    def test_ambiguous(self, changes: dict[str, Any], reason: str) -> None:
        """Names are unique, and no topic receives its own translation."""
        (found,) = mistakes_with(**changes)
        assert reason in found

    def test_two(self) -> None:
        """Two sources with separate topics are valid, and one can list its metadata topics."""
        till = source(name="till", topics=["raw.till", "raw.till.meta"], metadata_topics=["raw.till.meta"])
        settings = settings_with(sources=[source(), till])
        assert ["shop", "till"] == [found.name for found in settings.sources]

    def test_patterns(self) -> None:
        """Topics can be patterns. A metadata topic can match one or be a pattern itself."""
        (found,) = settings_with(sources=[source(topics=["raw.*"], metadata_topics=["raw.meta", "*.md"])]).sources
        assert ("raw.*",) == found.topics


class TestProjections:
    def test_none(self) -> None:
        """Without projections, there is one event topic, and four topics are written."""
        settings = parse(SMALLEST, {}, "config.yaml")
        assert ["cdc.canonical"] == settings.event_topics
        assert 4 == len(settings.written_topics)

    def test_two(self) -> None:
        """The canonical topic comes first, and the projections follow in file order with their options unchanged."""
        projections = [projection("b"), {"topic": "a", "codec": "json", "options": {"x": 1}}]
        settings = settings_with(projections=projections)
        assert ["cdc.canonical", "b", "a"] == settings.event_topics
        assert [{}, {"x": 1}] == [found.options for found in settings.projections]


class TestTemplates:
    def test_their_topics_are_ours(self) -> None:
        """They are not among the topics created at start, and every topic with the prefix is ours."""
        settings = settings_with(projections=[projection("t.{source}.{table}"), projection("p")])
        assert ["cdc.canonical", "p"] == settings.event_topics
        assert settings.writes("t.anything")
        assert settings.writes("p")
        assert not settings.writes("q")

    @pytest.mark.parametrize(
        ("changes", "meant"),
        [
            ({"projections": [projection("cdc.{table}")]}, "cdc.canonical also begins with cdc."),
            ({"projections": [projection("t.{table}"), projection("t.x.{table}")]}, "t.x. also begins with t."),
            ({"projections": [projection("t.{table}"), projection("t.{source}")]}, "t. also begins with t."),
            ({"projections": [projection("raw.{table}")]}, "topic raw.shop cannot be both an input and an output"),
            (
                {"projections": [projection("t.{table}")], "sources": [source(), source(name="b", topics=["b"])]},
                "use t.{source}.{table}",
            ),
            ({"projections": [projection("{table}")]}, "not a topic template"),
            (
                {"projections": [{"topic": "t.{source}", "codec": "upsert", "options": {"key": "columns"}}]},
                "key: columns requires one topic per table",
            ),
        ],
    )
    def test_refused(self, changes: dict[str, Any], meant: str) -> None:
        """Settings that could mix two streams in one topic, or that nobody could read, are rejected."""
        with pytest.raises(ConfigError, match=re.escape(meant)):
            settings_with(**changes)

    def test_no_pattern_reads_them(self) -> None:
        """If we read a topic that we write, the loop would never end."""
        settings = settings_with(projections=[projection("t.{table}")], sources=[source(topics=["*"])])
        assert {"raw"} == resolve(settings, ["raw", "t.shop.orders"])[0].keys()


class TestTopicNames:
    @pytest.mark.parametrize("name", [".", "..", "", "a b", "a" * 250])
    def test_refused(self, name: str) -> None:
        """An invalid topic name is rejected here and not by the first produce request."""
        with pytest.raises(ConfigError, match=r"output\.topic"):
            settings_with(output={"topic": name})

    @pytest.mark.parametrize("name", ["a", ".a", "..a", "a..", "a" * 249])
    def test_allowed(self, name: str) -> None:
        """Dots are allowed as long as the name has another character."""
        assert name == settings_with(output={"topic": name}).output.topic


class TestNumbers:
    @pytest.mark.parametrize(
        ("changes", "place"),
        [
            ({"limits": {"value_bytes": 0}}, "limits.value_bytes"),
            ({"limits": {"json_depth": 501}}, "limits.json_depth"),
            ({"limits": {"rows": 1_000_000}}, "limits.rows"),  # `pos` has six digits for the event of a record
            ({"limits": {"columns": "many"}}, "limits.columns"),
            ({"web": {"port": -1}}, "web.port"),
            ({"topics": {"partitions": 0}}, "topics.partitions"),
            ({"timing": {"session": 0}}, "timing.session"),
            ({"latency": {"linger_ms": -1}}, "latency.linger_ms"),
            # The broker aborts a transaction after a second or more, so a transaction must always end earlier.
            ({"latency": {"transaction_ms": 501}}, "latency.transaction_ms"),
            ({"latency": {"fetch_wait_ms": 0}}, "latency.fetch_wait_ms"),
        ],
    )
    def test_out_of_bounds(self, changes: dict[str, Any], place: str) -> None:
        """A number that cannot work is rejected with its place."""
        (found,) = mistakes_with(**changes)
        assert found.startswith(f"{place}: ")

    def test_times_must_hold_together(self) -> None:
        """A drain that can outlast the rebalance is rejected."""
        (found,) = mistakes_with(timing={"rebalance": 40, "delivery": 40})
        assert "timing.delivery must be less than timing.rebalance" in found
        # A wait for metadata ends when the partition is revoked, so it can be as long as desired.
        assert 300 == settings_with(timing={"metadata_wait": 300}).timing.metadata_wait


class TestFile:
    def test_load(self, tmp_path: Path) -> None:
        """The file is read as UTF-8 with the given environment."""
        path = tmp_path / "config.yaml"
        path.write_text(SMALLEST + "group: ${GROUP}  # 名\n", encoding="utf-8")
        assert "g" == load(path, {"GROUP": "g"}).group

    def test_absent(self, tmp_path: Path) -> None:
        """A missing file is reported by name."""
        path = tmp_path / "config.yaml"
        with pytest.raises(ConfigError, match=rf"^cannot read {path}: No such file or directory$"):
            load(path, {})

    def test_not_text(self, tmp_path: Path) -> None:
        """A file that is not UTF-8 is reported by name."""
        path = tmp_path / "config.yaml"
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigError, match=rf"^cannot read {path}: .*UTF-8"):
            load(path, {})

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "the file must contain a mapping"),
            ("- a", "the file must contain a mapping"),
            ("a: [", "not YAML"),
            ("a: !!python/object:os.system x", "not YAML: could not determine a constructor"),
            ("a: \x00", "not YAML"),
        ],
    )
    def test_not_a_mapping(self, text: str, reason: str) -> None:
        """A file that is not a YAML mapping is reported."""
        (found,) = mistakes(text)
        assert found.startswith(reason)

    def test_where_the_yaml_breaks(self) -> None:
        """A syntax error states line and column."""
        (found,) = mistakes("a: 1\nb: [1, 2\nc: 3\n")
        assert found.endswith("(line 3, column 2)")


class TestYaml:
    """The rules of cdc_core.config for all settings, shown with two cases from practice."""

    def test_a_key_stands_once(self) -> None:
        """A second `group` or `sources` would silently replace the first, and its topics would not be read."""
        text = f"group: g{SMALLEST}group: h\nsources: []\n"
        assert [
            "line 5: duplicate key 'group', first used on line 1",
            "line 6: duplicate key 'sources', first used on line 3",
        ] == mistakes(text)

    def test_a_column_named_no(self) -> None:
        """NO is a valid column, as a name and in a list."""
        text = SMALLEST.replace("raw.shop]", "raw.shop], tables: [{table: EMP, key: [NO], columns: {NO: int64}}]")
        (table,) = parse(text, {}, "config.yaml").sources[0].tables
        assert (("NO",), {"NO": "int64"}) == (table.key, table.columns)


class TestStart:
    def test_documented(self) -> None:
        """The documented example is valid: a source can differ from the others."""
        page = (Path(__file__).parents[3] / "docs" / "operate" / "topics.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"^```yaml\n(start:\n?.*?)^```$", page, re.MULTILINE | re.DOTALL)
        settings = parse('kafka: {bootstrap_servers: "localhost:9092"}\n' + example, {}, "config.yaml")
        assert ("earliest", datetime(2026, 4, 13, 20, tzinfo=UTC)) == (settings.start, settings.sources[0].start)

    @pytest.mark.parametrize("start", ["earliest", "latest", "2026-04-13T20:00:00+02:00"])
    def test_words_and_times(self, start: str) -> None:
        """The setting accepts two words and any time with a time zone."""
        assert settings_with(start=start).start is not None
        assert settings_with(sources=[source(start=start)]).sources[0].start is not None

    @pytest.mark.parametrize("start", ["now", "2026-04-13T20:00:00", ""])
    def test_others_are_mistakes(self, start: str) -> None:
        """Another word, or a time without a time zone, is reported with its place."""
        assert all(line.startswith("start") for line in mistakes_with(start=start))


class TestRegistry:
    def test_documented(self) -> None:
        """The example for operators is valid."""
        page = (Path(__file__).parents[3] / "docs" / "operate" / "outputs.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"^```yaml\n(registry:\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert parse(SMALLEST + example, {"REGISTRY_PASSWORD": "x"}, "config.yaml").registry is not None

    def test_none(self) -> None:
        """Without the section, no registry is used."""
        assert parse(SMALLEST, {}, "config.yaml").registry is None

    def test_all(self) -> None:
        """Every setting is read. The password comes from the environment and is not shown."""
        text = (
            SMALLEST
            + """
registry:
  url: https://one:8081, https://two/apis/ccompat/v7/
  auto_register: false
  username: user
  password: ${PASSWORD}
  ssl_ca_file: ca.pem
  ssl_certificate_file: own.pem
  ssl_key_file: own.key
"""
        )
        registry = parse(text, {"PASSWORD": "hunter2"}, "config.yaml").registry
        assert registry is not None
        assert registry.password is not None
        assert "hunter2" == registry.password.get_secret_value()
        assert "hunter2" not in repr(registry)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({}, "registry.url: is required"),
            ({"url": ""}, "url must begin with http:// or https:// and contain a host"),
            ({"url": "registry:8081"}, "url must begin with http:// or https:// and contain a host"),
            ({"url": "ftp://registry"}, "url must begin with http:// or https:// and contain a host"),
            ({"url": "http://"}, "url must begin with http:// or https:// and contain a host"),
            ({"url": "http://one,"}, "url must begin with http:// or https:// and contain a host"),
            ({"url": "http://one:99999"}, "url is not a URL"),
            ({"url": "http://user:hunter2@one:99999"}, "url is not a URL"),
            ({"url": "http://one?x=1"}, "url must not contain ? or #"),
            ({"url": "http://user:hunter2@one"}, "use username and password instead"),
            ({"url": "http://one,http://hunter2@two"}, "use username and password instead"),
            ({"url": "http://one", "username": "u"}, "username and password must be set together"),
            ({"url": "http://one", "password": "hunter2"}, "username and password must be set together"),
            ({"url": "http://one", "username": "a:b", "password": "hunter2"}, "registry.username: "),
            ({"url": "https://one", "ssl_key_file": "k"}, "ssl_certificate_file and ssl_key_file must be set together"),
            ({"url": "http://one", "ssl_ca_file": "c"}, "ssl_* is set, but url does not begin with https://"),
            ({"url": "http://one", "register": True}, "(did you mean auto_register?)"),
        ],
    )
    def test_wrong(self, changes: dict[str, Any], said: str) -> None:
        """Invalid settings are reported at the start, and no secret is quoted."""
        (found,) = mistakes_with(registry=changes)
        assert said in found
        assert "hunter2" not in found


class TestMasks:
    @pytest.mark.parametrize(
        ("masks", "said"),
        [
            ({"rules": [{"mask": "hash"}]}, "a rule uses hash, which requires a key; set masks.key"),
            ({"rules": [{"mask": "encrypt"}]}, "masks.rules[0].mask"),
            ({"rules": [{"mask": "truncate"}]}, "mask truncate needs length"),
            ({"rules": [{"mask": "keep_last", "length": 0}]}, "masks.rules[0].length"),
            ({"rules": [{"mask": "drop", "length": 1}]}, "mask drop has no length"),
            ({"rules": [{"mask": "replace"}]}, "mask replace needs text"),
            (
                {"rules": [{"mask": "drop", "source": "shpo"}]},
                "a rule refers to source shpo, which does not exist",
            ),
            ({"rules": [{"mask": "drop", "columns": "a"}]}, "(did you mean column?)"),
            ({"key": "hunter2"}, "masks.key"),
        ],
    )
    def test_wrong(self, masks: dict[str, Any], said: str) -> None:
        """A rule that would mask nothing, or something else than it says, is reported at the start without the key."""
        (found,) = mistakes_with(masks=masks)
        assert said in found
        assert "hunter2" not in found

    def test_the_key_is_nowhere(self) -> None:
        """The key appears neither in printed settings nor in the digest."""
        keys = ["a" * 40, "b" * 40]
        one, other = (Settings.model_validate({**yaml.safe_load(SMALLEST), "masks": {"key": key}}) for key in keys)
        assert one.digest == other.digest
        assert keys[0] not in repr(one) + one.model_dump_json()


def test_dialects_of_the_schema() -> None:
    """Editors suggest the dialects that are built in, but the chart accepts others, because they can be plug-ins."""
    assert [*DIALECTS] == Settings.model_json_schema()["$defs"]["Source"]["properties"]["dialect"]["examples"]
