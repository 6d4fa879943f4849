"""Read the values in after images, by table column. Each image is read with its event's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spark_sink.errors import Reason
from spark_sink.events.arrow_values import fits, image, is_exactly, without_members
from spark_sink.events.quarantine import Rejected
from spark_sink.model.event import Event, gap, withholding
from spark_sink.schema.evolution import Plan


class Unreadable(Exception):
    """An image does not match its schema. The message gives the reason, but no values."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Examined(NamedTuple):
    """An event that goes to quarantine, and the event that is applied in its place."""

    rejected: Rejected
    instead: Event


class ImageReader:
    """Reads the images of one table in a batch."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        # Usually, a value goes to the column with the same name and need not be moved.
        self._unmoved = {
            schema_id: frozenset(places)
            for schema_id, places in plan.places.items()
            if all(name == place and name not in plan.versions for name, place in places.items())
        }

    def __call__(self, event: Event) -> Mapping[str, Any]:
        """Return the values that an event writes, by table column.

        Raises:
            Unreadable: the event has no image, or its image has columns that the event's schema does not contain.
        """
        try:
            sent = image(event.after or b"")
        except ValueError:
            raise Unreadable(Reason.IMAGE_INVALID, "the after image is not a JSON object") from None
        unmoved = self._unmoved.get(event.schema_id)
        if unmoved is not None and unmoved.issuperset(sent):
            return sent
        values: dict[str, Any] = {}
        for name, value in sent.items():
            place = self._place(event, name, value)
            if place is not None:
                values[place] = value
                # The value is stored in only one of its column's versions.
                values.update(dict.fromkeys(self._plan.versions.get(place, ())))
        return values

    def _place(self, event: Event, name: str, value: Any) -> str | None:
        """Return the table column for a value in an image, or None if the value is not stored."""
        places = self._plan.places[event.schema_id]
        if name not in places:
            raise Unreadable(Reason.COLUMN_UNKNOWN, f"the column {name} is not in the schema of the event")
        place = places[name]
        return None if place is None else self._narrowest(place, value)

    def _narrowest(self, place: str, value: Any) -> str:
        """Return the first version of a column that can store a value, if earlier versions are too narrow."""
        types = self._plan.shape.types
        return next((name for name in self._plan.narrower.get(place, ()) if is_exactly(value, types[name])), place)

    def examined(self, event: Event) -> Examined | None:
        """Check each value in the image of an event. Return None if all values can be written.

        If only some values fit, the event is applied without the others. If an image is unreadable, its row is
        incomplete.
        """
        if event.after is None or event.op == "d":
            return None
        shape = self._plan.shape
        unfit: dict[str, str] = {}
        try:
            self(event)
            for name, value in image(event.after).items():
                place = self._place(event, name, value)
                if place is not None and place not in shape.key and not fits(value, shape.types[place]):
                    unfit[name] = place
        except Unreadable as error:
            return Examined(Rejected(event.index, error.reason, str(error)), gap(event))
        if not unfit:
            return None
        first = next(iter(unfit.values()))
        why = f"the value of {first} cannot be stored exactly as {shape.types[first]}"
        rest = withholding(event, without_members(event.after, unfit))
        return Examined(Rejected(event.index, Reason.VALUE_INVALID, why), rest)
