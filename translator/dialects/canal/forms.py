"""Detect differences between writers. They are proofs against the declared profile or, with `auto`, hints about the
profile to declare.

An UPDATE with two full images can be read in two ways. Two kinds of messages identify the writer. A DELETE does so by
the field that contains its row, and an UPDATE by the columns in `old` (§6.5 B, C). If a message proves a format other
than the declared one, the partition stops before the next UPDATE is misread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from translator._native.layout import TakenMessage
from translator.dialects.canal.variant import OLD_LISTS_UNCHANGED, VARIANT_CONFLICT
from translator.errors import quote
from translator.message import Change, Finding, Message, RowChange, Writer

_LEGACY = "dts_legacy"

_RESTARTED = "dts with instance.created and instance.restarted"
_OF_OLD = (
    f"dts_legacy (Alibaba DTS from before 20 March 2022), {_RESTARTED} (such an instance that was restarted since) or "
    "drs (Huawei DRS)"
)
"""The writers that may have sent a DELETE with its row in `old`. Their UPDATEs have opposite meanings, so the DELETE
does not determine the profile.
"""

_DELETED_IN_OLD = "the DELETE has its row in old"
_DELETED_IN_DATA = "the DELETE has its row in data"
_SPARSE_OLD = "the UPDATE has only the changed columns in old"
_FULL_OLD = "the UPDATE lists all columns in old, unchanged ones too"


class _Proof(Struct, frozen=True):
    """A message that contradicts the declared profile.

    Args:
        met: the property that was found in the message, as text.
        expected: the corresponding property of messages from the declared writer.
        declare: the profiles whose writers send such messages.
    """

    met: str
    expected: str
    declare: str


def _proof(profile: str, change: RowChange) -> _Proof | None:
    """Return a row's proof that the declared profile is wrong, or None if it has none."""
    notes = change.notes or ()
    if change.op == "u" and OLD_LISTS_UNCHANGED in notes:
        return _Proof(_FULL_OLD, "lists only the changed ones", f"{_OF_OLD}, dts, ticdc, flink_cdc or ckafka")
    # A conflict based on a mark in the message keeps the declared writer and proves no format.
    if VARIANT_CONFLICT not in notes or change.writer.variant_basis == "declared":
        return None
    if change.op == "u":
        return _Proof(_SPARSE_OLD, "lists all columns", _RESTARTED)
    if change.op != "d":
        return None
    if change.writer.variant == _LEGACY:
        declare = f"{_LEGACY} or {_RESTARTED}; drs if Huawei DRS is the writer" if profile == "dts" else _OF_OLD
        return _Proof(_DELETED_IN_OLD, "has it in data", declare)
    return _Proof(_DELETED_IN_DATA, "has it in old", "dts (Huawei DRS in JSON-C)" if profile == "drs" else _RESTARTED)


class DeclaredForms:
    """A partition's proofs against the declared profile.

    Args:
        fatal: the first proof stops the partition. Otherwise, each kind is reported once.
        earlier: describes earlier UPDATEs that were read as declared; None mentions only the last one.
    """

    def __init__(self, source: str, profile: str, *, fatal: bool, earlier: Callable[[int], str] | None = None) -> None:
        self._source = source
        self._profile = profile
        self._fatal = fatal
        self._earlier = earlier or self._last_update
        self._update: int | None = None
        self._current: int | None = None
        self._reported: set[str] = set()

    def take(self, message: Message, change: RowChange) -> Finding | None:
        """Return the finding about the next row, if the row proves another format."""
        proof = _proof(self._profile, change) if change.op in ("u", "d") else None
        if proof is not None:
            return self._finding(message, change, proof)
        if change.op == "u":
            self.read_update(message.offset)
        elif change.op == "d" and change.writer.variant_basis == "certain":
            return self._in_order(message, change)
        return None

    @property
    def needs_current(self) -> bool:
        """Return whether `take` must get a DELETE in the current format."""
        return self._current is None

    @property
    def needs_legacy(self) -> bool:
        """Return whether `take` must get a DELETE in the legacy format."""
        return self._current is not None and "order" not in self._reported

    def read_update(self, offset: int) -> None:
        """Store the position of the last UPDATE that was read according to the declared profile."""
        self._update = offset

    def _finding(self, message: Message, change: RowChange, proof: _Proof) -> Finding | None:
        if not self._fatal and proof.met in self._reported:
            return None
        self._reported.add(proof.met)
        table = quote(f"{change.table.db}.{change.table.table}", 200)
        at = f"partition {message.partition}, offset {message.offset} (row {change.row})"
        text = (
            f"canal: source {self._source}, table {table}, topic {message.topic}, {at}: {proof.met}, but the "
            f"declared writer (profile {self._profile}) {proof.expected}. Another writer must have sent it, so data "
            f"and old may be swapped in its UPDATEs. {self._earlier(message.offset)} Declare the writer: "
            f"{proof.declare}; `translator init` shows the evidence. Then translate the UPDATEs of this partition "
            "again"
        )
        return Finding(text, self._fatal)

    def _last_update(self, offset: int) -> str:
        if self._update is None:
            return "No UPDATE from this partition has been read since the start."
        return f"The last UPDATE before it, at offset {self._update}, was read as declared."

    def _in_order(self, message: Message, change: RowChange) -> Finding | None:
        """An instance switches its format only once. If a DELETE in the old format follows one in the new format, it
        therefore comes from another writer.
        """
        if change.writer.variant != _LEGACY:
            self._current = message.offset if self._current is None else self._current
            return None
        if self._current is None or "order" in self._reported:
            return None
        self._reported.add("order")
        return _two_writers(message, self._current)


def _two_writers(message: Message, current: int) -> Finding:
    text = (
        f"this DELETE has the format from before March 2022, but it follows a DELETE in the new format at offset "
        f"{current}; two "
        "instances seem to write to this partition"
    )
    return _hint(message, text)


def _hint(message: Message, text: str) -> Finding:
    at = f"canal: topic {message.topic}, partition {message.partition}, offset {message.offset}"
    return Finding(f"{at}: {text}", fatal=False)


class DeclaredFormGuard:
    """The guard for a partition whose updates are not checked for continuity."""

    def __init__(self, forms: DeclaredForms) -> None:
        self._forms = forms

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Return the findings about the rows in the next message."""
        found = [self._forms.take(message, change) for change in changes if isinstance(change, RowChange)]
        return [finding for finding in found if finding is not None]

    def inspect_taken(
        self, messages: Sequence[Message], taken: Sequence[TakenMessage]
    ) -> tuple[int, Sequence[Finding]]:
        """Store only the position of the last UPDATE. The native path accepts no message that proves another format."""
        for message, found in zip(reversed(messages), reversed(taken), strict=True):
            if found.operation.layout.op == "u":
                self._forms.read_update(message.offset)
                break
        return len(taken), ()

    def missed(self) -> None:
        """Do nothing, because a dead letter changes nothing."""


class UndeclaredFormGuard:
    """The guard for a partition with `auto`, which only gives hints."""

    def __init__(self) -> None:
        self._current: int | None = None
        self._reported: set[str] = set()

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Return the findings about the DELETEs in the next message."""
        deletes = [change for change in changes if isinstance(change, RowChange) and change.op == "d"]
        found = [self._take(message, change.writer) for change in deletes]
        return [finding for finding in found if finding is not None]

    def inspect_taken(
        self, messages: Sequence[Message], taken: Sequence[TakenMessage]
    ) -> tuple[int, Sequence[Finding]]:
        """Inspect messages up to the first one with a finding. The native path accepts no DELETE with its row in
        `old`.
        """
        for number, (message, found) in enumerate(zip(messages, taken, strict=True)):
            layout = found.operation.layout
            finding = self._take(message, layout.writer) if layout.op == "d" else None
            if finding is not None:
                return number + 1, (finding,)
        return len(taken), ()

    def missed(self) -> None:
        """Do nothing, because a dead letter changes nothing."""

    def _take(self, message: Message, writer: Writer) -> Finding | None:
        if writer.variant != _LEGACY:
            self._current = message.offset if self._current is None else self._current
            if _LEGACY not in self._reported:
                return None
            text = (
                "this DELETE has its row in data, but earlier DELETEs had their rows in old; if Alibaba DTS is the "
                "writer, declare"
            )
            return self._once("restarted", _hint(message, f"{text} {_RESTARTED}, restarted between them"))
        if self._current is not None:
            return self._once("order", _two_writers(message, self._current))
        text = (
            "this DELETE has its row in old. Both Alibaba DTS (before March 2022) and Huawei DRS write such "
            "DELETEs, but their UPDATEs have opposite meanings. Check an UPDATE whose result you know. If data "
            "contains the new row, declare profile drs. If data contains the old row, declare dts_legacy, or dts "
            "with the option instance. Then replay the UPDATEs that became dead letters"
        )
        return self._once(_LEGACY, _hint(message, text))

    def _once(self, what: str, finding: Finding) -> Finding | None:
        if what in self._reported:
            return None
        self._reported.add(what)
        return finding
