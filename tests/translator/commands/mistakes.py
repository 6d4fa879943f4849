"""Typical configuration mistakes and the answers of `translator check`, compared with mistakes.txt. `python -m
tests.translator.commands.mistakes` rewrites that file. Review the changes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.translator.commands import _program

GOLDEN = Path(__file__).with_suffix(".txt")

FINE = """\
group: cdc
kafka:
  bootstrap_servers: nobody:1
sources:
  - name: erp
    dialect: canal
    topics: [erp.canal]
    options: {profile: oss}
  - name: hr
    dialect: shareplex
    topics: [hr.shareplex]
    tables:
      - {table: HR.EMP, key: [ID], columns: {ID: int64}}
projections:
  - {topic: cdc.debezium, codec: debezium}
"""

# The text to replace, and its replacement.
MISTAKES = {
    "a setting that does not exist": ("group:", "grup:"),
    "a setting of a section that does not exist": ("bootstrap_servers:", "bootstrap.servers:"),
    "a section that is missing": ("kafka:\n  bootstrap_servers: nobody:1\n", ""),
    "a section that is no mapping": ("kafka:\n  bootstrap_servers: nobody:1\n", "kafka: nobody:1\n"),
    "a number for a text": ("group: cdc", "group: 1"),
    "a boolean for a text": ("group: cdc", "group: true"),
    "a text for a number": ("group: cdc", "group: cdc\nweb: {port: http}"),
    "a number out of bounds": ("group: cdc", "group: cdc\nweb: {port: 70000}"),
    "a word for a boolean": ("group: cdc", "group: cdc\ntopics: {create: perhaps}"),
    "a text for a list": ("topics: [erp.canal]", "topics: erp.canal"),
    "a list that is empty": ("topics: [erp.canal]", "topics: []"),
    "no sources": (FINE.partition("sources:")[2].partition("projections:")[0], " []\n"),
    "a mapping for a list": ("      - {table: HR.EMP, key: [ID], columns: {ID: int64}}", "      HR.EMP: {key: [ID]}"),
    "a regular expression for a pattern": ("[erp.canal]", "['erp\\.(a|b)']"),
    "a name with a slash": ("name: erp", "name: erp/1"),
    "two sources of one name": ("name: hr", "name: erp"),
    "a topic of two sources": ("[hr.shareplex]", "[erp.canal]"),
    "a topic that is read and written": ("cdc.debezium", "erp.canal"),
    "two projections into one topic": ("projections:", "projections:\n  - {topic: cdc.debezium, codec: avro}"),
    "a dialect that does not exist": ("dialect: canal", "dialect: cannal"),
    "an option that does not exist": ("profile:", "profil:"),
    "a profile that does not exist": ("profile: oss", "profile: dts-legacy"),
    "an option of another profile": ("profile: oss", "profile: oss, instance: {created: 2021-01-01T00:00:00Z}"),
    "a time without its offset": ("profile: oss", "profile: dts, instance: {created: 2021-01-01}"),
    "a zone that does not exist": ("profile: oss", "profile: oss, timezone: Asia/Shanghia"),
    "an option that is no list": ("profile: oss", "profile: oss, heartbeat_tables: a.b"),
    "an option that is no boolean": ("profile: oss", "profile: oss, newline_batches: often"),
    "an option of another dialect": ("profile: oss", "preset: quest"),
    "a type that does not exist": ("ID: int64", "ID: bigint"),
    "a key that is no column": ("key: [ID]", "key: [NO]"),
    "a codec that does not exist": ("codec: debezium", "codec: debezium-json"),
    "an option of another codec": ("codec: debezium", "codec: avro, options: {tombstones: true}"),
    "a start that is no time": ("group: cdc", "group: cdc\nstart: yesterday"),
    "an error code that does not exist": ("group: cdc", "group: cdc\non_error: {MALFORMED: stop}"),
    "a policy that does not exist": ("group: cdc", "group: cdc\non_error: {MALFORMED_JSON: ignore}"),
    "a login without its mechanism": ("nobody:1", "nobody:1\n  security_protocol: SASL_SSL"),
    "a password without a login": ("nobody:1", "nobody:1\n  sasl_password: hush-hush"),
    "a variable that is not set": ("nobody:1", "${NO_SUCH_VARIABLE}"),
    "a key that stands twice": ("group: cdc", "group: cdc\ngroup: other"),
    "text that is no YAML": ("topics: [erp.canal]", "topics: [erp.canal"),
    "a tab in front": ("  bootstrap_servers", "\tbootstrap_servers"),
    "times that cannot hold": ("group: cdc", "group: cdc\ntiming: {delivery: 60, rebalance: 60}"),
    "a mask of a source that does not exist": ("group: cdc", "group: cdc\nmasks: {rules: [{source: crm, mask: drop}]}"),
    "a registry without its address": ("group: cdc", "group: cdc\nregistry: {}"),
    "three mistakes at once": ("profile: oss", "profle: oss}\n    start: soon\n    order: {by: time"),
}


def told() -> str:
    """Return all mistakes with their error messages."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "translator.yaml")
        for name, (old, new) in MISTAKES.items():
            if old not in FINE:
                raise ValueError(f"{name}: {old!r} is not in the file")
            file.write_text(FINE.replace(old, new, 1), encoding="utf-8")
            ran = _program.run("check", "-c", str(file))
            said = (ran.stdout + ran.stderr).replace(f"{folder}/", "")
            parts.append(f"== {name}: exit code {ran.returncode}\n{said}")
    return "\n".join(parts)


if __name__ == "__main__":
    GOLDEN.write_text(told(), encoding="utf-8")
