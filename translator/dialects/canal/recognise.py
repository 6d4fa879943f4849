"""Determine the profile for a sample of Canal messages. Each observed trait rules out the writers that never show
it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from translator.dialects.canal.continuity import ContinuityGuard
from translator.dialects.canal.decode import Canal
from translator.dialects.canal.known_rows import PlainKnownRows
from translator.dialects.canal.marks import MARKS, WriterMark
from translator.dialects.canal.options import Continuity, Options
from translator.errors import MessageError
from translator.message import Changes, Setup
from translator.proposals import Proposal, ReadMessage, notes_of

Body = Mapping[str, Any]

_WRITERS = ("oss", "dts", "dts_legacy", "drs", "ticdc", "flink_cdc", "ckafka")


class Trait(Struct, frozen=True):
    """A trait of messages, and the profiles whose writers never show it."""

    words: str
    seen: Callable[[Body], bool]
    excludes: frozenset[str]


def propose(sample: Sequence[ReadMessage]) -> list[Proposal]:
    """Return the profile, as far as the sample determines it, and the options that only the operator knows."""
    bodies = [body for read in sample for body in _bodies(read.message.value or b"")]
    directions = [trait for profile, trait in _DIRECTIONS.items() if _contradicts_itself(sample, profile)]
    operators = _left_to_the_operator(sample, bodies, direction_is_known=len(directions) == 1)
    return [_profile(bodies, directions), *operators]


def _profile(bodies: Sequence[Body], directions: Sequence[Trait]) -> Proposal:
    seen = [*(trait for trait in _TRAITS if any(trait.seen(body) for body in bodies)), *directions]
    why = f"seen: {'; '.join(trait.words for trait in seen) or 'no trait that distinguishes writers'}"
    if _VOLCENGINE in seen:
        return Proposal("profile", "auto", "certain", why)
    left = [profile for profile in _WRITERS if not any(profile in trait.excludes for trait in seen)]
    if not left and not directions:
        left, odd = _of_nearly_all(bodies)
        why += f"; {odd}" if odd else ""
    if len(left) != 1:
        who = (
            f"remaining candidates: {', '.join(left)}"
            if left
            else "several writers, or one in two forms (instance: {created, restarted})"
        )
        return Proposal("profile", "auto", "unknown", f"{why}; {who}")
    (profile,) = left
    sure = profile in _PROOFS and all(trait in seen for trait in _PROOFS[profile])
    return Proposal("profile", profile, "certain" if sure else "likely", why)


def _of_nearly_all(bodies: Sequence[Body]) -> tuple[list[str], str | None]:
    """Return the profiles that nearly all messages match, and a description of the few messages that do not match.

    The field in which a DELETE has its row is never ignored, because it changes when an instance restarts.
    """
    misfits: Counter[str] = Counter()
    traits = {trait.words: [trait.seen(body) for body in bodies] for trait in _TRAITS}
    for n in range(len(bodies)):
        misfits.update(frozenset().union(*(trait.excludes for trait in _TRAITS if traits[trait.words][n])))
    fewest = min(misfits[profile] for profile in _WRITERS)
    left = [profile for profile in _WRITERS if misfits[profile] == fewest]
    odd = [trait for trait in _TRAITS if trait.excludes & {*left} and any(traits[trait.words])]
    if fewest > len(bodies) * _ODD_SHARE or {_LEGACY, _CURRENT} & {*odd}:
        return [], None
    words = "; ".join(trait.words for trait in odd)
    return left, f"only {len(bodies) - fewest} of {len(bodies)} messages match ({words})"


def _contradicts_itself(sample: Sequence[ReadMessage], profile: str) -> bool:
    """Return whether changes to the same rows contradict each other if they are read with a profile.

    After a gap in the offsets, nothing is known about any row, because a sample has old and new messages.
    """
    dialect = Canal(Setup("sample"), Options(profile=profile))
    guards: dict[tuple[str, int], ContinuityGuard] = {}
    states = []
    chosen = Continuity(action="warn")
    expected: dict[tuple[str, int], int] = {}
    for message in (read.message for read in sample):
        place = message.topic, message.partition
        if place not in guards:
            states.append(PlainKnownRows(chosen.keys, fatal=False))
            guards[place] = ContinuityGuard("sample", profile, "", chosen, states[-1], complete=True)
        elif message.offset != expected[place]:
            guards[place].missed()
        expected[place] = message.offset + 1
        try:
            outcome = dialect.decode(message)
        except MessageError:
            guards[place].missed()
            continue
        if isinstance(outcome, Changes):
            guards[place].inspect(message, outcome.changes)
    return any(state.contradictions for state in states)


def _left_to_the_operator(
    sample: Sequence[ReadMessage], bodies: Sequence[Body], *, direction_is_known: bool
) -> Iterator[Proposal]:
    if "TZ_UNKNOWN" in notes_of(sample):
        why = (
            "TIMESTAMP columns are written in the time zone of the writer's JVM, such as Asia/Shanghai, which the "
            "messages do not contain"
        )
        yield Proposal("timezone", None, "unknown", why)
    if any(_deleted_in_old(body) for body in bodies):
        why = (
            "both Alibaba DTS (before March 2022) and Huawei DRS put a deleted row into old, but their UPDATEs have "
            "opposite meanings. Check an UPDATE whose result you know. If data contains the new row, declare drs. "
            "Otherwise declare dts_legacy, whose UPDATEs, according to the vendor, contain the old row in data"
        )
        if not direction_is_known:
            yield Proposal("legacy_update_direction", None, "unknown", why)
        why = "profile dts with {created: TIME, restarted: [TIME]} if the instance was restarted since 20 March 2022"
        yield Proposal("instance", None, "unknown", why)
    names = {f"{body.get('database')}.{body.get('table')}" for body in bodies if body.get("table") in _HEARTBEATS}
    for name in sorted(names):
        yield Proposal(
            "heartbeat_tables", None, "unknown", f"{name} may be a heartbeat table of the server; if so, list it"
        )


def _bodies(value: bytes) -> Iterator[Body]:
    """Return the objects in a record, which contains a single object, one object per line, or an array of objects. A
    value that only the dialect itself can parse has no traits.
    """
    for text in (value, *value.splitlines()):
        try:
            body = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            continue
        yield from (one for one in (body if isinstance(body, list) else [body]) if isinstance(one, dict))
        if text is value:
            return


# -- Traits


def _rows(body: Body, member: str) -> list[Body]:
    sent = body.get(member)
    return [row for row in (sent if isinstance(sent, list) else [sent]) if isinstance(row, dict) and row]


def _deleted_in_old(body: Body) -> bool:
    return body.get("type") == "DELETE" and bool(_rows(body, "old")) and not _rows(body, "data")


def _deleted_in_data(body: Body) -> bool:
    return body.get("type") == "DELETE" and bool(_rows(body, "data")) and not _rows(body, "old")


def _changes_alone(body: Body) -> bool:
    pairs = zip(_rows(body, "data"), _rows(body, "old"), strict=False)
    return body.get("type") == "UPDATE" and any(old.keys() < new.keys() for new, old in pairs)


def _not_text(body: Body) -> bool:
    rows = [row for member in ("data", "old") for row in _rows(body, member)]
    return any(not isinstance(cell, str) and cell is not None for row in rows for cell in row.values())


def _epoch_timestamps(body: Body) -> bool:
    types = body.get("mysqlType")
    columns = types.items() if isinstance(types, dict) else ()
    names = [name for name, type_ in columns if str(type_).lower() == "timestamp"]
    cells = [row.get(name) for member in ("data", "old") for row in _rows(body, member) for name in names]
    return any(isinstance(cell, str) and re.fullmatch(r"\d{9,10}(\.\d+)?", cell) for cell in cells)


def _one_transaction(body: Body) -> bool:
    return re.fullmatch(r"[0-9a-fA-F-]{36}:\d+", str(body.get("gtid"))) is not None


def _many_transactions(body: Body) -> bool:
    return re.search(r":\d+-\d+", str(body.get("gtid"))) is not None


def _marked(mark: WriterMark, body: Body) -> bool:
    return mark.seen(str(body.get("type")), dict(body))


def _all_but(*profiles: str) -> frozenset[str]:
    return frozenset(_WRITERS) - {*profiles}


_TIDB = Trait("the member _tidb", lambda body: "_tidb" in body, _all_but("ticdc"))
_VOLCENGINE = Trait("the member pgType", lambda body: "pgType" in body, _all_but())
_LEGACY = Trait("a DELETE with its row in old", _deleted_in_old, _all_but("dts_legacy", "drs", "flink_cdc", "ckafka"))
_CURRENT = Trait("a DELETE with its row in data", _deleted_in_data, frozenset({"dts_legacy", "drs"}))
_HUAWEI = Trait("the type INIT_DDL", lambda body: body.get("type") == "INIT_DDL", _all_but("drs"))
_CONNECTOR = next(
    Trait(mark.words, partial(_marked, mark), _all_but("ckafka")) for mark in MARKS if mark.variant == "ckafka"
)
# The service draws the same conclusion from a single message (marks.py).
_MARKS = {
    mark.words: Trait(mark.words, partial(_marked, mark), frozenset(mark.excludes))
    for mark in MARKS
    if mark.excludes and mark.variant != "ckafka"
}
_TRAITS: Sequence[Trait] = (
    _TIDB,
    _VOLCENGINE,
    _LEGACY,
    _CURRENT,
    _HUAWEI,
    _CONNECTOR,
    Trait(
        "an UPDATE with only the changed columns in old",
        _changes_alone,
        frozenset({"dts_legacy", "drs", "flink_cdc", "ckafka"}),
    ),
    Trait("cells that are not strings", _not_text, _all_but("flink_cdc", "ckafka")),
    Trait("TIMESTAMP as seconds since 1970", _epoch_timestamps, _all_but("drs")),
    Trait("types of columns", lambda body: bool(body.get("mysqlType")), frozenset({"flink_cdc", "ckafka"})),
    Trait(
        "an id that increases by one", lambda body: bool(body.get("id")), frozenset({"ticdc", "flink_cdc", "ckafka"})
    ),
    Trait("a gtid of a single transaction", _one_transaction, frozenset({"oss", "drs", "ckafka"})),
    Trait("a gtid set of all transactions", _many_transactions, frozenset({"dts", "dts_legacy", "drs", "ckafka"})),
    *_MARKS.values(),
)

_DIRECTIONS: Mapping[str, Trait] = {
    "dts": Trait("updates that are only consistent if data is the row before", lambda _: False, _all_but("dts_legacy")),
    "dts_legacy": Trait(
        "updates that are only consistent if data is the row after", lambda _: False, frozenset({"dts_legacy"})
    ),
}
"""For each profile, the trait of a sample that contradicts itself when it is read with this profile."""

_ODD_SHARE = 0.05
"""The fraction of a sample that may be damaged or come from another writer without affecting the choice of profile."""

# If all traits in a set occur and nothing excludes the profile, no other writer is possible.
_PROOFS: Mapping[str, Sequence[Trait]] = {
    "ticdc": (_TIDB,),
    "drs": (_HUAWEI,),
    "dts": (_CURRENT, _MARKS["a type of cloud services"]),
}

_HEARTBEATS = frozenset({"ha_health_check", "heartbeat"})
"""Tables that RDS and AliSQL write automatically (docs/dialects/canal.md)."""
