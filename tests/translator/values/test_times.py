"""Times in all zones, including the hours in which clocks change."""

import zoneinfo
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path
from zoneinfo import _zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.values.outcome import OUT_OF_RANGE, Issue, Noted, check, outcome
from translator import values
from translator.values import converter, timestamptz_in


class TestZones:
    @pytest.mark.parametrize(
        ("zone", "value", "expected"),
        [
            ("+08:00", "2024-02-29 12:00:00", "2024-02-29T04:00:00Z"),
            ("Asia/Shanghai", "2024-02-29 12:00:00.5", "2024-02-29T04:00:00.5Z"),
            ("America/New_York", "2024-01-15 12:00:00", "2024-01-15T17:00:00Z"),
            ("America/New_York", "2024-07-15 12:00:00", "2024-07-15T16:00:00Z"),
            ("America/New_York", "2024-03-10 01:59:59", "2024-03-10T06:59:59Z"),
            ("America/New_York", "2024-03-10 02:30:00", Noted("2024-03-10T07:30:00Z", "TZ_GAP")),
            ("America/New_York", "2024-03-10 03:00:00", "2024-03-10T07:00:00Z"),
            ("America/New_York", "2024-11-03 00:59:59", "2024-11-03T04:59:59Z"),
            ("America/New_York", "2024-11-03 01:30:00.25", Noted("2024-11-03T05:30:00.25Z", "TZ_OVERLAP")),
            ("America/New_York", "2024-11-03 02:00:00", "2024-11-03T07:00:00Z"),
            ("Pacific/Apia", "2011-12-30 12:00:00", Noted("2011-12-30T22:00:00Z", "TZ_GAP")),  # a skipped day
            ("Australia/Lord_Howe", "2024-04-07 01:45:00", Noted("2024-04-06T14:45:00Z", "TZ_OVERLAP")),  # half an hour
            ("America/New_York", "2024-11-03 01:30:00-04:00", "2024-11-03T05:30:00Z"),
            ("Asia/Shanghai", "0001-01-01 00:00:00", OUT_OF_RANGE),
            (None, "2024-02-29 12:00:00", Issue("ZONE_MISSING")),
        ],
    )
    def test_default(self, zone: str | None, value: str, expected: object) -> None:
        """Text without a zone is read in the default zone. An ambiguous local time means the earlier moment, and a
        skipped one is read with the earlier offset. Both get a note.
        """
        check(timestamptz_in(zone), value, expected)

    @pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "/etc/passwd", "Asia", "+24:00", "+08:60"])
    def test_unknown(self, name: str) -> None:
        """The error names an unknown zone, whatever the file system has under that name."""
        with pytest.raises(ValueError, match=r"unknown time zone '.*'; use a UTC offset such as \+08:00, or a name"):
            values.zone(name)

    @given(st.datetimes(), st.integers(-(24 * 60) + 1, 24 * 60 - 1), st.text("0123456789", max_size=9))
    def test_instant(self, local: datetime, minutes: int, fraction: str) -> None:
        """With any offset, a zoned time is written as the same instant in UTC, with unchanged fraction digits."""
        local = local.replace(microsecond=0)
        sign, (hour, minute) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
        dotted = f".{fraction}" if fraction else ""
        try:
            expected: object = f"{(local - timedelta(minutes=minutes)).isoformat()}{dotted}Z"
        except OverflowError:
            expected = OUT_OF_RANGE
        found = outcome(converter("timestamptz"), f"{local.isoformat()}{dotted}{sign}{hour:02d}:{minute:02d}")
        assert expected == found


def zone_changes(name: str) -> list[tuple[int, timedelta, timedelta]]:
    """Return the moments at which a zone changes its offset, with the offsets before and after."""
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as data:
        # The C implementation does not expose them.
        table = _zoneinfo.ZoneInfo.from_file(data, key=name)
    offsets = [table._tti_before.utcoff, *(entry.utcoff for entry in table._ttinfos)]
    return [change for change in zip(table._trans_utc, offsets, offsets[1:], strict=False) if change[1] != change[2]]


CHANGES = {name: zone_changes(name) for name in resources.files("tzdata").joinpath("zones").read_text().split()}
CHANGING = sorted(name for name, changes in CHANGES.items() if changes)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@st.composite
def near_a_change(draw: st.DrawFn) -> tuple[str, datetime]:
    """Generate a zone and a local time within hours of a change of its offset."""
    name = draw(st.sampled_from(CHANGING))
    moment, before, after = draw(st.sampled_from(CHANGES[name]))
    around = draw(st.integers(-3 * 3600, 3 * 3600) | st.sampled_from((0, -1)))
    shift = draw(st.sampled_from((before, after)))
    return name, (EPOCH + timedelta(seconds=moment + around) + shift).replace(tzinfo=None)


class TestChangesOfOffset:
    @given(near_a_change())
    def test_what_clocks_showed(self, drawn: tuple[str, datetime]) -> None:
        """A value without a note is the only moment at which clocks showed that time. With TZ_OVERLAP, it is the
        earlier of two such moments. With TZ_GAP, there is none, and clocks showed a later time.
        """
        name, local = drawn
        tz = values.zone(name)
        found = outcome(timestamptz_in(name), local.isoformat())
        text, note = (found.value, found.note) if isinstance(found, Noted) else (found, None)
        moment = datetime.fromisoformat(str(text))
        shown = moment.astimezone(tz)
        changes = [after - before for at, before, after in CHANGES[name] if abs(at - moment.timestamp()) <= 86_400]
        again = [
            moment - change for change in changes if (moment - change).astimezone(tz).replace(tzinfo=None) == local
        ]
        if note == "TZ_GAP":
            assert shown.replace(tzinfo=None) - local in changes
        else:
            assert local == shown.replace(tzinfo=None)
            later = [other for other in again if other > moment]
            assert (note == "TZ_OVERLAP") == bool(later)
            assert [] == [other for other in again if other < moment]

    def test_a_day_later_another_offset(self) -> None:
        """The fast path relies on this: no zone moves by more than a day, and none moves back within two days."""
        for name, changes in CHANGES.items():
            assert all(abs(after - before) <= timedelta(days=1) for _, before, after in changes), name
            for (first, before, _), (second, _, after) in pairwise(changes):
                assert before != after or second - first > 2 * 86_400, name


@pytest.mark.parametrize(
    ("year", "month", "day", "expected"),
    [
        (44, 3, 15, "0044-03-15"),
        (-44, 3, 15, OUT_OF_RANGE),
        (10_000, 1, 1, OUT_OF_RANGE),
        (2**63, 1, 1, OUT_OF_RANGE),
        (2023, 2, 29, Issue("INVALID_DATE")),
        (2023, -1, 1, Issue("INVALID_DATE")),
        (0, 1, 1, Issue("ZERO_DATE")),
    ],
)
def test_dates_of_components(year: int, month: int, day: int, expected: object) -> None:
    """Sources that send components get the same dates and issues."""
    check(lambda raw: values.date_text(year, month, day, raw), "", expected)


FRACTIONS = st.text("0123456789", max_size=9).map(lambda digits: f".{digits}" if digits else "")


class TestLikeDatetime:
    @given(st.dates())
    def test_dates(self, day: date) -> None:
        """Every date of the years 1 to 9999 is unchanged, with or without midnight."""
        for spelled in (f"{day}", f"{day} 00:00:00", f"{day}T00:00:00.000000000"):
            assert str(day) == converter("date")(spelled)

    @given(st.integers(-300_000, 300_000), st.integers(0, 99), st.integers(0, 99))
    def test_all_other_dates(self, year: int, month: int, day: int) -> None:
        """A date is valid for `datetime`, or an issue."""
        expected: object = f"{year:04d}-{month:02d}-{day:02d}"
        try:
            date(year, month, day)
        except ValueError:
            expected = Issue("ZERO_DATE" if 0 in (year, month, day) else "INVALID_DATE")
        if not 0 <= year <= 9999:
            expected = OUT_OF_RANGE
        sign = "-" if year < 0 else ""
        assert expected == outcome(converter("date"), f"{sign}{abs(year):04d}-{month:02d}-{day:02d}")

    @given(st.datetimes(), FRACTIONS, st.sampled_from("T "))
    def test_timestamps(self, local: datetime, fraction: str, separator: str) -> None:
        """Every local time of those years keeps its fraction digits."""
        whole = local.replace(microsecond=0)
        expected = f"{whole.isoformat()}{fraction}"
        assert expected == converter("timestamp")(f"{whole.isoformat(separator)}{fraction}")
        assert f"{expected}Z" == converter("timestamptz")(f"{whole.isoformat(separator)}{fraction}Z")

    @given(st.integers(0, 999), st.integers(0, 59), st.integers(0, 59), FRACTIONS, st.sampled_from(("", "-")))
    def test_times(self, hours: int, minutes: int, seconds: int, fraction: str, sign: str) -> None:
        """Every time of up to 999 hours in either direction is unchanged. Only zero has no sign."""
        text = f"{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"
        is_zero = not (hours or minutes or seconds or int(fraction[1:] or 0))
        assert (text if is_zero else sign + text) == converter("time")(sign + text)


def test_named_zones_do_not_come_from_the_machine(tmp_path: Path) -> None:
    """Another image with another tz database gives the same bytes."""
    (tmp_path / "Asia").mkdir()
    utc = resources.files("tzdata.zoneinfo").joinpath("UTC").read_bytes()
    (tmp_path / "Asia" / "Shanghai").write_bytes(utc)
    values.zone.cache_clear()
    zoneinfo.reset_tzpath([tmp_path])
    try:
        assert timedelta(hours=8) == values.zone("Asia/Shanghai").utcoffset(datetime(2026, 1, 1))
    finally:
        zoneinfo.reset_tzpath()
        values.zone.cache_clear()
