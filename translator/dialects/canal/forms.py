"""The forms of DELETE in a partition: hints on what kind of DTS instance writes it (§6.5 C)."""

from __future__ import annotations

from collections.abc import Sequence

from translator.dialects.canal.evidence import RowEvidence
from translator.dialects.canal.variant import VARIANT_CONFLICT
from translator.message import Change, Finding, Message, RowChange

_LEGACY = "dts_legacy"


class Forms:
    """The forms of DELETE, each of which only one kind of instance writes (C.1, C.2): hints, each said once."""

    def __init__(self) -> None:
        self._current: int | None = None
        self._said: set[str] = set()

    def take(self, message: Message, change: RowEvidence) -> Finding | None:
        """Return the finding about the next DELETE where a form is declared, if there is one."""
        if change.writer.variant_basis != "certain":
            return None
        if change.writer.variant != _LEGACY:
            self._current = message.offset if self._current is None else self._current
        elif self._current is not None:
            return self._two_writers(message)
        if VARIANT_CONFLICT in change.notes:
            text = f"a DELETE of form {change.writer.variant}, which is not the declared one; it was read right"
            return self._once(f"conflict {change.writer.variant}", message, text)
        return None

    def take_undeclared(self, message: Message, change: RowChange) -> Finding | None:
        """The same under `auto`, where it is a hint on what to declare."""
        if change.writer.variant != _LEGACY:
            self._current = message.offset if self._current is None else self._current
            if _LEGACY not in self._said:
                return None
            text = "a DELETE of the form since March 2022, after some of the form before it"
            return self._once(
                "restarted", message, f"{text}; declare profile dts with the instance, restarted between them"
            )
        if self._current is not None:
            return self._two_writers(message)
        text = "a DELETE of the form before March 2022; declare profile dts_legacy, or dts with the instance"
        return self._once(_LEGACY, message, f"{text}, to have the updates read that are dead letters now")

    def _two_writers(self, message: Message) -> Finding | None:
        text = (
            f"a DELETE of the form before March 2022, after one of the form since then at offset {self._current}; "
            "two instances seem to write to this partition"
        )
        return self._once("order", message, text)

    def _once(self, what: str, message: Message, text: str) -> Finding | None:
        if what in self._said:
            return None
        self._said.add(what)
        at = f"canal: topic {message.topic}, partition {message.partition}, offset {message.offset}"
        return Finding(f"{at}: {text}", fatal=False)


class FormGuard:
    """The guard of a partition under `auto`: it only hints."""

    def __init__(self) -> None:
        self._forms = Forms()

    def inspect(self, message: Message, changes: Sequence[Change]) -> list[Finding]:
        """Return the findings about the DELETEs of the next message."""
        deletes = [change for change in changes if isinstance(change, RowChange) and change.op == "d"]
        found = [self._forms.take_undeclared(message, change) for change in deletes]
        return [finding for finding in found if finding is not None]

    def missed(self) -> None:
        """A dead letter changes nothing."""
