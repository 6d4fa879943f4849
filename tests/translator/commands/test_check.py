"""`translator check` rejects what `run` would reject, without brokers."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.token_providers import install
from translator.commands import main

Check = Callable[[str], tuple[int, str, str]]

FINE = """
kafka: {bootstrap_servers: "nobody:1"}
projections:
  - {topic: cdc.debezium, codec: debezium, options: {tombstones: true}}
sources:
  - {name: shop, dialect: canal, topics: [raw.shop], options: {profile: oss, timezone: UTC}}
  - name: erp
    dialect: shareplex
    options: {timezone: UTC}
    topics: [raw.erp]
    tables: [{table: "OWNER.*", key: [ID]}]
"""


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Check:
    """Check a text as a file, and return the exit code, standard output and standard error."""

    def check_text(text: str) -> tuple[int, str, str]:
        path = tmp_path / "config.yaml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["translator", "check", "-c", str(path)])
        with pytest.raises(SystemExit) as exited:
            main()
        out, err = capsys.readouterr()
        return int(exited.value.code or 0), out.replace(str(path), "FILE"), err.replace(str(path), "FILE")

    return check_text


def test_fine(check: Check) -> None:
    """A configuration that `run` would accept passes, although no broker answers."""
    said = "FILE: ok, 2 source(s)\n  writes cdc.canonical as avro\n  writes cdc.debezium as debezium\n"
    assert (0, said, "") == check(FINE)


@pytest.mark.parametrize("options", ["", ", options: {}", ", options: {tinyint1_as_boolean: true}"])
def test_canal_without_a_profile_is_refused(check: Check, options: str) -> None:
    """A default profile would silently swap the images in the stream of a legacy DTS instance."""
    code, out, err = check(FINE.replace(", options: {profile: oss, timezone: UTC}", options))
    assert (2, "") == (code, out)
    assert re.search(r"sources\[0\] \(shop\)(\.options)?: ", err)
    for said in ("options.profile is required", "the two are silently swapped", "dts_legacy", "translator init"):
        assert said in err


@pytest.mark.parametrize(
    ("tables", "warning"),
    [
        ("", "no tables are declared (tables:), so inserts and deletes have no key, and columns have no type"),
        (
            'tables: [{table: "OWNER.T", key: [ID]}, {table: "OWNER.*", columns: {ID: int64}}]',
            "tables: OWNER.* declares no key, and the messages for inserts and deletes do not contain one",
        ),
    ],
    ids=["none", "no key"],
)
def test_a_source_whose_messages_name_no_key_is_told_what_it_lacks(check: Check, tables: str, warning: str) -> None:
    """SharePlex messages have neither keys nor types. That is a warning for the source and no error."""
    code, out, err = check(FINE.replace('tables: [{table: "OWNER.*", key: [ID]}]', tables))
    assert (0, "FILE: ok, 2 source(s)") == (code, out.splitlines()[0])
    assert f"translator: warning: source erp: {warning}\n" == err


QLIK = """
kafka: {bootstrap_servers: "nobody:1"}
sources:
  - {name: erp, dialect: qlik, topics: [raw.*]}
"""


@pytest.mark.parametrize(
    ("configuration", "warned"),
    [
        (QLIK, True),
        (QLIK.replace("[raw.*]", "[raw.*], options: {topics: HR.EMP}"), False),
        (QLIK.replace("[raw.*]", "[raw.*], options: {message_key: table}"), False),
        (QLIK.replace("[raw.*]", "[raw.*], options: {message_key: primary_key}"), True),
        (QLIK.replace("[raw.*]", "[raw.*], metadata_topics: [raw.md]"), False),
        (QLIK + 'registry: {url: "http://nobody:1"}', False),
    ],
    ids=["nothing", "topics", "key is table", "key is primary", "metadata", "registry"],
)
def test_a_qlik_source_of_which_nothing_names_the_tables(check: Check, configuration: str, warned: bool) -> None:
    """Without metadata on its topics or table names in its messages, every message becomes a dead letter."""
    code, _, err = check(configuration)
    warning = (
        "translator: warning: source erp: neither metadata_topics nor options.topics is set. Unless metadata messages "
        "arrive on its topics, messages without a table name become dead letters, and rows have no types\n"
    )
    assert (0, warning if warned else "") == (code, err)


def test_a_name_that_a_pattern_of_another_source_matches(check: Check) -> None:
    """No broker is needed to find that two sources claim a topic. Both are reported."""
    code, out, err = check(FINE.replace("[raw.erp]", "[raw.erp, raw.s*]"))
    assert (0, "FILE: ok, 2 source(s)") == (code, out.splitlines()[0])
    claim = "topic raw.shop is claimed by more than one source: shop (raw.shop) and erp (raw.s*)"
    assert f"translator: warning: {claim}; `translator run` rejects this configuration\n" == err


def test_the_example_of_the_page(check: Check) -> None:
    """The example of outputs in docs/operate/outputs.md is a valid configuration."""
    page = Path(__file__).parents[3] / "docs" / "operate" / "outputs.md"
    (example,) = re.findall(r"^```yaml\n(output:.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    sources = FINE.partition("sources:")[2]
    code, out, _ = check(f'kafka: {{bootstrap_servers: "nobody:1"}}\n{example}sources:{sources}')
    assert 0 == code
    projections = ["  writes cdc.debezium as debezium", "  writes rows.{source}.{table} as upsert"]
    assert ["  writes cdc.canonical as avro", *projections] == out.splitlines()[1:]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("kafka:", "kafak:", "FILE:\n"),
        ("dialect: canal", "dialect: cannal", "unknown dialect 'cannal' (did you mean canal?)"),
        ("profile: oss", "profle: oss", "canal: unknown option 'profle' (did you mean profile?)"),
        ("profile: oss", "profile: os", "canal: unknown profile 'os' (did you mean oss?)"),
        (
            "codec: debezium",
            "codec: debezim",
            "topic cdc.debezium: unknown codec 'debezim' (did you mean debezium?); allowed: avro",
        ),
        (
            "tombstones: ",
            "tombstone: ",
            "topic cdc.debezium: debezium: unknown option 'tombstone' (did you mean tombstones?)",
        ),
        (
            "codec: debezium",
            "codec: json",
            "topic cdc.debezium: json: unknown option 'tombstones'; allowed: key_change",
        ),
        ("key: [ID]", "columns: {ID: number}", "tables: OWNER.*: column ID: unknown type 'number'"),
        ("name: erp", "name: shop", "line 7: sources[1] (shop): source name shop is used more than once"),
        (
            "[raw.erp]",
            "[raw.shop]",
            "line 10: sources[1] (erp).topics: topic raw.shop is claimed by more than one source: shop and erp",
        ),
        ("kafka:", "masks: {key: short}\nkafka:", "line 2: masks.key: expected at least 32 characters"),
        ("nobody:1", "${NO_SUCH_VARIABLE}", "FILE: environment variable NO_SUCH_VARIABLE is not set"),
    ],
    ids=[
        "setting",
        "dialect",
        "option",
        "value",
        "codec",
        "codec option",
        "option of another codec",
        "table",
        "source name",
        "topic",
        "length of a secret",
        "variable",
    ],
)
def test_refused(check: Check, old: str, new: str, reason: str) -> None:
    """A mistake in settings, dialect, options or tables is reported with exit code 2."""
    code, out, err = check(FINE.replace(old, new))
    assert (2, "") == (code, out)
    assert err.startswith("translator: FILE:")
    assert reason in err


MASKED = (
    FINE
    + """
masks:
  key: ${MASK_KEY}
  rules: [{source: erp, column: id, mask: hash}, {source: shop, column: ssn, mask: drop}]
"""
)


def test_masks(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output lists the masked sources and warns if a declared key is hashed. It never shows the hash key."""
    monkeypatch.setenv("MASK_KEY", "s" * 40)
    code, out, err = check(MASKED.replace('"OWNER.*"', "OWNER.T"))
    assert 0 == code
    assert "  masks columns of shop\n  masks columns of erp\n" in out
    assert "warning: source erp, table 'OWNER.T': key columns are hashed (ID): outputs identify rows by hashes" in err
    assert "sss" not in out + err


def test_masks_that_take_a_declared_key(check: Check) -> None:
    wrong = FINE.replace('"OWNER.*"', "OWNER.T") + "masks: {rules: [{column: id, mask: drop}]}"
    code, _, err = check(wrong)
    assert (2, True) == (code, "column 'ID' is part of the key, and a rule applies drop" in err)


CRM = """
kafka: {bootstrap_servers: "nobody:1"}
sources:
  - {name: crm, dialect: canal, topics: [raw.crm], options: {profile: oss, timezone: UTC}}
"""


@pytest.mark.parametrize(
    ("section", "warning"),
    [
        (
            "projections: [{topic: p, codec: debezium, include: [{table: t}, {source: crmm}]}]",
            "projections[0].include[1]: no source matches crmm",
        ),
        ("output: {exclude: [{source: 'x*'}]}", "output.exclude[0]: no source matches x*"),
    ],
    ids=["include", "exclude"],
)
def test_a_pattern_for_a_source_that_does_not_exist(check: Check, section: str, warning: str) -> None:
    """A misspelled source would leave an output empty without any other message."""
    code, _, err = check(CRM + section)
    assert (0, f"translator: warning: {warning}; the sources are crm\n") == (code, err)


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ("profile: auto, timezone: UTC", ["profile auto does not identify the writer"]),
        ("profile: oss", ["options.timezone is not set"]),
        ("profile: auto", ["profile auto does not identify the writer", "options.timezone is not set"]),
    ],
)
def test_a_writer_or_time_zone_that_is_left_open(check: Check, options: str, warned: list[str]) -> None:
    code, _, err = check(CRM.replace("profile: oss, timezone: UTC", options))
    assert (0, len(warned)) == (code, len(err.splitlines()))
    assert [] == [text for text in warned if f"warning: source crm: {text}" not in err]


def test_a_shareplex_source_without_a_time_zone(check: Check) -> None:
    _, _, err = check(FINE.replace("    options: {timezone: UTC}\n", ""))
    assert "warning: source erp: options.timezone is not set" in err


def test_token_providers(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider is found and built, but not called for a token. A missing one is reported with the installed names."""
    install(tmp_path / "site", "corp-login", "Issued = lambda *, realm: lambda: 1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "issued_tokens", raising=False)

    def checked(name: str, options: str) -> tuple[int, str]:
        provider = f"oauth_provider: {name}, oauth_provider_options: {options}"
        login = f'nobody:1", security_protocol: SASL_SSL, sasl_mechanism: OAUTHBEARER, {provider}}}'
        code, _, err = check(FINE.replace('nobody:1"}', login))
        return code, err

    assert (0, "") == checked("corp-login", "{realm: x}")
    code, err = checked("corp-logn", "{realm: x}")
    assert code == 2
    assert "kafka.oauth_provider: unknown token provider 'corp-logn' (did you mean corp-login?); allowed: " in err
    assert "corp-login" in err.partition("allowed: ")[2]
    code, err = checked("corp-login", "{relam: hunter2}")
    assert code == 2
    assert "cannot be used with oauth_provider_options (relam): TypeError: " in err
    assert "hunter2" not in err
