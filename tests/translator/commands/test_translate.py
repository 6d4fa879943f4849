"""`translator translate`, from the command line to the exit code, with nothing mocked."""

import base64
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.translator.dialects.qlik import avro
from tests.translator.service._lessons import HOSTILE, Lessons
from translator import dialects
from translator.codecs.json import JsonCodec
from translator.commands import main
from translator.commands.record_file import _Line
from translator.commands.translate import parse_cli_options
from translator.dialects import DialectPlugin
from translator.errors import ConfigError

INSERT = '{"meta":{"op":"ins","table":"OWNER.ORDERS"},"data":{"ID":7,"NAME":"x"}}'
UNKNOWN = '{"meta":{"op":"upsert","table":"OWNER.ORDERS"},"data":{"ID":7,"CARD":"4111-1111-1111-1111"}}'
CANAL = {
    "data": [{"id": "7", "name": "x"}, {"id": "8", "name": None}],
    "database": "shop",
    "es": 1_700_000_000_000,
    "id": 5,
    "isDdl": False,
    "mysqlType": {"id": "bigint", "name": "varchar(10)"},
    "old": None,
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": -5, "name": 12},
    "table": "orders",
    "ts": 1_700_000_000_500,
    "type": "INSERT",
}
LESSONS = DialectPlugin(
    name="lessons", api=1, build=lambda setup, _: Lessons(setup), options=msgspec.defstruct("No", ())
)
QLIK_METADATA = Path(__file__).parents[1] / "dialects" / "cases" / "qlik"


@dataclass(frozen=True)
class Ran:
    """The output of a run."""

    code: int
    out: bytes
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the events on standard output: one per line, and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def dead_letters(self) -> list[dict[str, Any]]:
        """Return the dead letters: all lines of standard error but the last."""
        return [json.loads(line) for line in self.err.splitlines()[:-1]]

    @property
    def summary(self) -> str:
        """Return the last line of standard error."""
        return self.err.splitlines()[-1]


Run = Callable[..., Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run the console command in this process with these arguments and input, and return exit code and outputs."""

    def run_once(*arguments: object, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["translator", "translate", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exited:
            main()
        captured = capsysbinary.readouterr()
        return Ran(int(exited.value.code or 0), captured.out, captured.err.decode())

    return run_once


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Write a record file with these values."""

    def write(*values: str | None, name: str = "records.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps({"value": value}) + "\n" for value in values))
        return path

    return write


FileOf = Callable[..., Path]


class TestOutput:
    def test_events(self, run: Run, file: FileOf) -> None:
        """Standard output has one event per line, in order, with images as objects. Only the summary is added."""
        ran = run("-d", "canal", file(json.dumps(CANAL)))
        assert 0 == ran.code
        assert ["file/file/0/0/0", "file/file/0/0/1"] == [event["id"] for event in ran.events]
        assert [{"id": 7, "name": "x"}, {"id": 8, "name": None}] == [event["after"] for event in ran.events]
        assert [{"id": 7}, {"id": 8}] == [event["key"] for event in ran.events]
        assert "records=1 translated=1 dead=0 skipped=0 learned=0 events=2\n" == ran.err

    def test_announcements(self, run: Run, file: FileOf, monkeypatch: pytest.MonkeyPatch) -> None:
        """Metadata is announced with an event, and its message counts as learned."""
        monkeypatch.setitem(dialects.DIALECTS, "lessons", LESSONS)
        teach = {"teach": "k", "text": "text", "announce": "rows"}
        ran = run("-d", "lessons", file(json.dumps(teach), json.dumps({"need": "k"})))
        assert ["schema", "row"] == [event["kind"] for event in ran.events]
        assert "records=2 translated=1 dead=0 skipped=0 learned=1 events=2\n" == ran.err

    def test_a_hostile_document(self, run: Run, file: FileOf, monkeypatch: pytest.MonkeyPatch) -> None:
        """Metadata that the dialect rejects becomes a dead letter, as in the service."""
        monkeypatch.setitem(dialects.DIALECTS, "lessons", LESSONS)
        ran = run("-d", "lessons", file(json.dumps({"teach": "k", "text": HOSTILE}), json.dumps({"need": "k"})))
        assert ["LIMIT_EXCEEDED", "SCHEMA_MISSING"] == [letter["code"] for letter in ran.dead_letters]

    def test_lines_are_the_contract(self, run: Run, file: FileOf) -> None:
        """Every line is an event of the JSON codec, byte for byte."""
        codec = JsonCodec()
        for line in run("-d", "canal", file(json.dumps(CANAL))).out.splitlines():
            assert [line] == [record.value for record in codec.encode(codec.decode(line))]

    def test_dead_letter(self, run: Run, file: FileOf) -> None:
        """A dead letter is a JSON object on standard error: code, message, origin and position, but no row data."""
        path = file(INSERT, UNKNOWN, INSERT)
        ran = run("-d", "shareplex", path)
        (dead,) = ran.dead_letters
        assert ["code", "message", "origin", "file", "line"] == list(dead)
        assert (str(path), 2) == (dead["file"], dead["line"])
        assert "UNKNOWN_OPERATION" == dead["code"]
        assert {"topic": "file", "partition": 0, "offset": 1} == dead["origin"]
        assert dead["message"].startswith("shareplex: unknown operation 'upsert'")
        assert "4111" not in ran.err
        assert [0, 2] == [event["origin"]["offset"] for event in ran.events]
        assert "records=3 translated=2 dead=1 skipped=0 learned=0 events=2" == ran.summary

    def test_skipped(self, run: Run, file: FileOf) -> None:
        """A tombstone is also accounted for."""
        ran = run("-d", "canal", file(None, json.dumps(CANAL)))
        assert (0, "records=2 translated=1 dead=0 skipped=1 learned=0 events=2") == (ran.code, ran.summary)

    def test_nothing(self, run: Run, file: FileOf) -> None:
        """An empty file is translated without output."""
        ran = run("-d", "canal", file())
        assert (0, b"", "records=0 translated=0 dead=0 skipped=0 learned=0 events=0\n") == (ran.code, ran.out, ran.err)

    def test_several_files(self, run: Run, file: FileOf) -> None:
        """Files are read in order and share the account and the offsets, so no id repeats."""
        ran = run("-d", "shareplex", file(INSERT, INSERT, name="a"), file(INSERT, name="b"))
        assert [0, 1, 2] == [event["origin"]["offset"] for event in ran.events]
        assert 3 == len({event["id"] for event in ran.events})
        assert "records=3 translated=3 dead=0 skipped=0 learned=0 events=3" == ran.summary

    def test_a_dump(self, run: Run, tmp_path: Path) -> None:
        """Console consumer output is translated unchanged. A dead letter states file and line."""
        path = tmp_path / "dump"
        path.write_text(f"{INSERT}\n\nnull\n{UNKNOWN}\n")
        ran = run("-d", "shareplex", path)
        assert ["file/file/0/0/0"] == [event["id"] for event in ran.events]
        (dead,) = ran.dead_letters
        assert (str(path), 4, 3) == (dead["file"], dead["line"], dead["origin"]["offset"])
        assert "records=3 translated=1 dead=1 skipped=1 learned=0 events=1" == ran.summary

    def test_lines(self, run: Run, tmp_path: Path) -> None:
        """With --lines, text that is not JSON becomes a dead letter, even in the first line."""
        path = tmp_path / "dump"
        path.write_text(f"Processed\n{INSERT}\n")
        assert (1, 0) == (run("-d", "shareplex", path).code, len(run("-d", "shareplex", path).events))
        ran = run("-d", "shareplex", "--lines", path)
        assert (0, ["MALFORMED_JSON"], 1) == (ran.code, [dead["code"] for dead in ran.dead_letters], len(ran.events))

    def test_learned(self, run: Run, tmp_path: Path) -> None:
        """Metadata is learned wherever it appears, so a row before its metadata is translated too."""
        data, metadata = _qlik_pair()
        path = tmp_path / "records.jsonl"
        path.write_text("".join(json.dumps({"value_base64": value}) + "\n" for value in (data, metadata, data)))
        ran = run("-d", "qlik", path)
        assert 0 == ran.code
        assert "records=3 translated=2 dead=0 skipped=0 learned=1 events=2" == ran.summary

    def test_metadata_missing(self, run: Run, tmp_path: Path) -> None:
        """A row without metadata in any file becomes a dead letter that says what to wait for."""
        data, _ = _qlik_pair()
        path = tmp_path / "records.jsonl"
        path.write_text(json.dumps({"value_base64": data}))
        ran = run("-d", "qlik", path)
        assert ["SCHEMA_MISSING"] == [dead["code"] for dead in ran.dead_letters]
        assert "records=1 translated=0 dead=1 skipped=0 learned=0 events=0" == ran.summary

    def test_same_bytes(self, run: Run, file: FileOf) -> None:
        """The same files give the same bytes."""
        path = file(json.dumps(CANAL))
        assert run("-d", "canal", path).out == run("-d", "canal", path).out


def _qlik_pair() -> tuple[str, str]:
    """Return a data message and the metadata message that it needs, as base64."""
    case = QLIK_METADATA / "refresh_with_metadata"
    (data,), (metadata, *_) = case.glob("message.*"), sorted(case.glob("metadata*"))
    return base64.b64encode(data.read_bytes()).decode(), base64.b64encode(metadata.read_bytes()).decode()


class TestInput:
    def test_record_fields(self, run: Run, tmp_path: Path) -> None:
        """The event has the position that the record states."""
        path = tmp_path / "records.jsonl"
        record = {"topic": "raw", "partition": 3, "offset": 42, "timestamp": 1500, "value": INSERT}
        path.write_text(json.dumps(record))
        (event,) = run("-d", "shareplex", path).events
        assert {"topic": "raw", "partition": 3, "offset": 42, "row": 0, "rows": 1} == event["origin"]
        assert ("file/raw/3/42/0", "raw:3@-", 1_500_000) == (event["id"], event["pos_scope"], event["ts_origin_us"])

    def test_base64(self, run: Run, tmp_path: Path) -> None:
        """A base64 value and its text are the same message."""
        text, encoded = tmp_path / "text", tmp_path / "encoded"
        text.write_text(json.dumps({"value": INSERT}))
        encoded.write_text(json.dumps({"value_base64": base64.b64encode(INSERT.encode()).decode()}))
        assert run("-d", "shareplex", text).out == run("-d", "shareplex", encoded).out != b""

    def test_standard_input(self, run: Run, file: FileOf) -> None:
        """`-` is standard input."""
        path = file(INSERT, UNKNOWN)
        ran = run("-d", "shareplex", "-", stdin=path.read_bytes())
        named = run("-d", "shareplex", path)
        assert (named.code, named.out, named.err.replace(str(path), "-")) == (ran.code, ran.out, ran.err)

    def test_raw(self, run: Run, tmp_path: Path) -> None:
        """With --raw, a file is one message, even over several lines."""
        path = tmp_path / "message.json"
        path.write_text(json.dumps(json.loads(INSERT), indent=2))
        (event,) = run("-d", "shareplex", "--raw", path).events
        assert {"ID": "7", "NAME": "x"} == event["after"]

    def test_raw_files(self, run: Run, tmp_path: Path) -> None:
        """Each raw file is a message with its own offset. Ids are unique, and a dead letter states its file."""
        paths = [tmp_path / name for name in "abc"]
        for path, text in zip(paths, (INSERT, UNKNOWN, INSERT), strict=True):
            path.write_text(text)
        ran = run("-d", "shareplex", "--raw", *paths)
        assert ["file/file/0/0/0", "file/file/0/2/0"] == [event["id"] for event in ran.events]
        assert [1] == [dead["origin"]["offset"] for dead in ran.dead_letters]

    def test_raw_standard_input(self, run: Run) -> None:
        """--raw and `-` together read one message from standard input."""
        ran = run("-d", "shareplex", "--raw", "-", stdin=INSERT.encode())
        assert (0, 1) == (ran.code, len(ran.events))

    def test_source(self, run: Run, file: FileOf) -> None:
        """The source's name is part of every event, as in the configuration."""
        (event,) = run("-d", "shareplex", "--source", "erp", file(INSERT)).events
        assert ("erp", "erp/file/0/0/0") == (event["source"], event["id"])


class TestOptions:
    def test_tables(self, run: Run, file: FileOf) -> None:
        """Tables are declared as in the configuration, as one YAML value."""
        tables = "tables=[{table: 'OWNER.*', key: [ID], columns: {ID: int64, NAME: string}}]"
        (event,) = run("-d", "shareplex", "-o", tables, file(INSERT)).events
        assert ({"ID": 7}, {"ID": 7, "NAME": "x"}, "full") == (event["key"], event["after"], event["after_state"])

    def test_of_the_dialect(self, run: Run, file: FileOf) -> None:
        """The dialect's options are given one by one."""
        for preset in ("quest", "dts"):
            (event,) = run("-d", "shareplex", "-o", f"preset={preset}", file(INSERT)).events
            assert preset in event["variant"]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ([], {}),
            (["profile=dts"], {"profile": "dts"}),
            (["a=1", "b=true", "c="], {"a": "1", "b": "true", "c": None}),
            (["a=b=c"], {"a": "b=c"}),
            (
                ["instance={created: 2021-01-01T00:00:00+08:00, restarted: [2022-05-01T00:00:00Z]}"],
                {"instance": {"created": "2021-01-01T00:00:00+08:00", "restarted": ["2022-05-01T00:00:00Z"]}},
            ),
        ],
    )
    def test_yaml(self, given: list[str], expected: dict[str, Any]) -> None:
        """A value is YAML with text or null scalars. The dialect's own types parse numbers and times."""
        assert expected == parse_cli_options(given)

    @pytest.mark.parametrize(
        ("pair", "reason"),
        [
            ("profile", "option 'profile' is not in the form NAME=VALUE"),
            ("=x", "form NAME=VALUE"),
            ("a=[", "option a: the value is not valid YAML"),
        ],
    )
    def test_not_an_option(self, pair: str, reason: str) -> None:
        """An unknown option is reported by name."""
        with pytest.raises(ConfigError, match=reason):
            parse_cli_options([pair])


class TestSchemas:
    """Registry schemas from a file."""

    @pytest.mark.parametrize("as_text", [True, False])
    def test_of_a_registry(self, run: Run, tmp_path: Path, as_text: bool) -> None:
        """A message in Confluent's frame is read with the schema of its id, given as an object or as text."""
        schema = avro.data_schema(avro.COLUMNS, avro.NAMESPACE)
        row = avro.body("INSERT", {"id": 7, "name": "x"})
        value = tmp_path / "value.bin"
        value.write_bytes(avro.framed(5, avro.written(schema, row)))
        schemas = tmp_path / "schemas.json"
        schemas.write_text(json.dumps({"5": json.dumps(schema) if as_text else schema, "6": "nonsense"}))
        ran = run("-d", "qlik", "--schemas", schemas, "--raw", value)
        (event,) = ran.events
        assert ({"id": 7, "name": "x"}, "CINMAD") == (event["after"], event["table"])
        (dead,) = run("-d", "qlik", "--raw", value).dead_letters
        assert "SCHEMA_MISSING" == dead["code"]

    @pytest.mark.parametrize("content", ["", "[]", '{"x":1}', '{"-1":1}', '{"4294967296":1}', '"5"', "[" * 100_000])
    def test_not_schemas(self, run: Run, file: FileOf, tmp_path: Path, content: str) -> None:
        """A file with other content is a usage error."""
        schemas = tmp_path / "schemas.json"
        schemas.write_text(content)
        ran = run("-d", "qlik", "--schemas", schemas, file(INSERT))
        assert (2, True) == (ran.code, ran.err.startswith("translator: --schemas: "))

    def test_of_another_dialect(self, run: Run, file: FileOf, tmp_path: Path) -> None:
        """Only dialects that read such schemas accept them."""
        schemas = tmp_path / "schemas.json"
        schemas.write_text('{"5":"int"}')
        assert 2 == run("-d", "shareplex", "--schemas", schemas, file(INSERT)).code


class TestExitCodes:
    @pytest.mark.parametrize(("strict", "code"), [([], 0), (["--strict"], 1)])
    def test_dead_letters(self, run: Run, file: FileOf, strict: list[str], code: int) -> None:
        """The exit code is 0 if every record is accounted for. With --strict, a dead letter makes it 1."""
        path = file(INSERT, UNKNOWN)
        ran = run("-d", "shareplex", *strict, path)
        assert code == ran.code
        assert (1, 1) == (len(ran.events), len(ran.dead_letters))

    def test_strict_without_dead_letters(self, run: Run, file: FileOf) -> None:
        """--strict allows skipped records."""
        assert 0 == run("-d", "canal", "--strict", file(None, json.dumps(CANAL))).code

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            (["-d", "cannal"], "translator: unknown dialect 'cannal' (did you mean canal?)"),
            (["-d", "canal", "-o", "profil=oss"], "translator: canal: unknown option 'profil' (did you mean profile?)"),
            (["-d", "canal", "-o", "profile=mine"], "translator: canal: unknown profile 'mine'"),
            (["-d", "canal", "-o", "oss"], "translator: option 'oss' is not in the form NAME=VALUE"),
            (
                ["-d", "canal", "-o", "tables=[{tabel: x}]"],
                "translator: canal: option tables[0]: Object contains unknown field `tabel`",
            ),
            (
                ["-d", "canal", "-o", "tables=[{table: x, columns: {a: b}}]"],
                "translator: tables: x: column a: unknown type",
            ),
        ],
    )
    def test_configuration(self, run: Run, file: FileOf, arguments: list[str], reason: str) -> None:
        """A wrong configuration leads to exit code 2 and a message without a traceback."""
        ran = run(*arguments, file(json.dumps(CANAL)))
        assert (2, b"") == (ran.code, ran.out)
        assert ran.err.startswith(reason)
        assert 1 == len(ran.err.splitlines())

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["-d", "canal"],
            ["-d", "canal", "no such file"],
            ["--no-such-option"],
            ["-d", "canal", "--raw", "--lines", __file__],
        ],
    )
    def test_usage(self, run: Run, arguments: list[str]) -> None:
        """A usage error leads to exit code 2."""
        ran = run(*arguments)
        assert (2, b"") == (ran.code, ran.out)
        assert "Usage: " in ran.err

    def test_not_a_record_file(self, run: Run, tmp_path: Path) -> None:
        """If a file is not a record file, nothing is translated and the exit code is 1."""
        path = tmp_path / "records.jsonl"
        path.write_text(json.dumps({"value": INSERT}) + "\nnot a record\n")
        ran = run("-d", "shareplex", path)
        assert (1, b"") == (ran.code, ran.out)
        assert ran.err.startswith(f"translator: {path}: line 2 is not a record: ")


@pytest.mark.parametrize("records", [1, 100])
def test_full_disk(file: FileOf, records: int) -> None:
    """A write error, immediate or at the final flush, is reported in one line and fails."""
    arguments = [sys.executable, "-m", "translator", "translate", "-d", "shareplex", str(file(*[INSERT] * records))]
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert 1 == ran.returncode
    assert b"translator: cannot write to standard output: No space left on device\n" == ran.stderr


def test_as_a_program(file: FileOf) -> None:
    """`python -m translator` is the same command and starts without a Kafka client."""
    path = file(INSERT, UNKNOWN)
    script = (
        "import sys; from translator.commands import main\n"
        "try: main()\n"
        "finally: assert not {'faust', 'aiokafka', 'confluent_kafka'} & set(sys.modules)\n"
    )
    arguments = ["translate", "-d", "shareplex", "--strict", str(path)]
    for program in (["-m", "translator"], ["-c", script]):
        ran = subprocess.run([sys.executable, *program, *arguments], capture_output=True, check=False, timeout=60)
        assert 1 == ran.returncode, ran.stderr
        assert 1 == len(ran.stdout.splitlines())
        assert b"records=2 translated=1 dead=1 skipped=0 learned=0 events=1" == ran.stderr.splitlines()[-1]


def test_help_and_page_tell_the_format(run: Run) -> None:
    """The command's help and page describe every member of a record and the two other forms."""
    told = run("--help").out.decode()
    documented = (Path(__file__).parents[3] / "docs" / "translate.md").read_text(encoding="utf-8")
    for member in _Line.__struct_fields__:
        assert re.search(rf"\b{member}\b", told)
        assert f"`{member}`" in documented
    for option in ("--lines", "--raw"):
        assert option in told
        assert f"`{option}`" in documented


def test_events_decode(run: Run, file: FileOf) -> None:
    """Each line is the event that Kafka would get, so tools can be developed with files first."""
    (line,) = run("-d", "shareplex", file(INSERT)).out.splitlines()
    assert '{"ID":"7","NAME":"x"}' == JsonCodec().decode(line).after
    assert b'{"ID":"7","NAME":"x"}' == bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])["after"])


def test_a_contradiction_stops_it(run: Run, file: FileOf) -> None:
    """If messages contradict the declared profile, it prints the earlier events and the reason and exits with 1."""
    update = CANAL | {"type": "UPDATE", "data": [CANAL["data"][0]], "old": [{"id": "7", "name": "y"}]}
    path = file(*map(json.dumps, (CANAL, update, CANAL)))
    ran = run("-d", "canal", "-o", "profile=dts", path)
    assert (1, [0, 0]) == (ran.code, [event["origin"]["offset"] for event in ran.events])
    assert ran.err.startswith(
        "translator: canal: source file, table 'shop.orders', topic file, partition 0: the change"
    )
    warned = run("-d", "canal", "-o", "profile=dts", "-o", "continuity={action: warn}", path)
    assert (0, [0, 0, 1, 2, 2]) == (warned.code, [event["origin"]["offset"] for event in warned.events])
    assert ran.err == warned.err.splitlines(keepends=True)[0]


class TestConfiguration:
    """With `-c`, a file is translated as by the service, and masked values appear nowhere."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> Path:
        path = tmp_path / "translator.yaml"
        path.write_text(
            """
            kafka: {bootstrap_servers: "none:1"}
            sources:
              - {name: shop, dialect: canal, topics: [raw.shop], options: {profile: oss}}
              - {name: till, dialect: canal, topics: [raw.till], options: {profile: oss}}
            masks:
              rules: [{source: shop, column: name, mask: replace, text: "(masked)"}]
            """
        )
        return path

    def test_columns_are_masked(self, run: Run, file: FileOf, config: Path) -> None:
        """Columns are masked in events and in reports of unreadable messages. The other source has no masks."""
        secret = {**CANAL, "data": [{"id": "7", "name": "hunter2"}]}
        unknown = {**secret, "type": "hunter2"}
        damaged = json.dumps(secret)[:-1]
        messages = file(json.dumps(secret), json.dumps(unknown), damaged)
        ran = run("-c", config, "--source", "shop", messages)
        assert [{"id": 7, "name": "(masked)"}] == [event["after"] for event in ran.events]
        assert ["shop/file/0/0/0"] == [event["id"] for event in ran.events]
        assert 2 == len(ran.dead_letters)
        assert "hunter2" not in ran.out.decode() + ran.err
        assert "hunter2" in run("-c", config, "--source", "till", messages).out.decode()

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((), "use --source to choose the source of the files: shop, till"),
            (("--source", "shpo"), "unknown source"),
            (("--source", "shop", "-d", "canal"), "remove -d and -o"),
            (("--source", "shop", "-o", "profile=oss"), "remove -d and -o"),
        ],
    )
    def test_refused(self, run: Run, file: FileOf, config: Path, arguments: tuple[str, ...], said: str) -> None:
        ran = run("-c", config, *arguments, file(json.dumps(CANAL)))
        assert (2, b"") == (ran.code, ran.out)
        assert said in ran.err

    def test_neither_dialect_nor_configuration(self, run: Run, file: FileOf) -> None:
        ran = run(file(json.dumps(CANAL)))
        assert 2 == ran.code
        assert "choose the dialect with -d, or use the source's configuration with -c" in ran.err
