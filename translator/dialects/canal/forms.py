"""The forms of DELETE in a partition: hints on which kind of DTS instance writes it."""

from __future__ import annotations

from translator.dialects.canal.variant import VARIANT_CONFLICT
from translator.message import Finding, Message, RowChange


class Forms:
    """The forms of DELETE, each of which only one kind of instance writes (C.1, C.2): hints, each said once."""

    def __init__(self) -> None:
        self._current: int | None = None
        self._said: set[str] = set()

    def take(self, message: Message, change: RowChange) -> Finding | None:
        """What is to be said about the next DELETE."""
        if change.writer.variant_basis != "certain":
            return None
        at = f"canal: topic {message.topic}, partition {message.partition}, offset {message.offset}"
        if change.writer.variant == "dts":
            self._current = message.offset if self._current is None else self._current
        elif self._current is not None:
            text = (
                f"{at}: a DELETE of the form before March 2022, after one of the form since then at offset "
                f"{self._current}; two instances seem to write to this partition"
            )
            return self._once("order", text)
        if VARIANT_CONFLICT in (change.notes or ()):
            text = f"{at}: a DELETE of form {change.writer.variant}, which is not the declared one; it was read right"
            return self._once(f"conflict {change.writer.variant}", text)
        return None

    def _once(self, what: str, text: str) -> Finding | None:
        if what in self._said:
            return None
        self._said.add(what)
        return Finding(text, fatal=False)
