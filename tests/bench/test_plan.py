"""The plan of `make bench` measures every question with every format, and its short profile is short."""

from __future__ import annotations

import pytest

from bench.contestants import CONTESTANTS
from bench.generators import WRITERS
from bench.plan import (
    DELIVERIES,
    FORMATS,
    FULL,
    LOOP,
    RATES,
    RATIOS,
    SERVICE,
    SHORT,
    SMALLEST,
    SWEPT_COLUMNS,
    formats_of,
    heats,
    ratio_heats,
)


def test_all_questions_of_all_formats() -> None:
    """The plan covers columns, processes, partitions, tables, unusual messages, and every suitable contestant."""
    cases = [case for heat in heats(FULL, list(WRITERS)) for case in heat.cases]
    for name in FORMATS:
        of = [case for case in cases if case.format == name]
        assert set(SWEPT_COLUMNS) == {case.columns for case in of if case.section == "columns"}
        for section, values in {
            "processes": {2},
            "partitions": {64},
            "tables": {2_000},
            "unusual": {0.05, 0.5},
        }.items():
            assert values == {getattr(case, section) for case in of if case.section == section}
    assert set(CONTESTANTS) == {case.contestant for case in cases if case.format == "canal"}
    others = {case.contestant for case in cases if case.format == "qlik_avro"}
    assert {LOOP, *(f"{SERVICE}{more}" for more in ("", ", exactly once", ", without its native path"))} == others


def test_short() -> None:
    """The short profile measures each format once, at the usual or the requested width. With a requested width, it does
    not measure latency at fixed rates.
    """
    for columns in (None, 60):
        planned = heats(SHORT, list(WRITERS), columns)
        short = [heat for heat in planned if heat.cases[0].section != "latency"]
        assert list(WRITERS) == [heat.cases[0].format for heat in short]
        assert {columns or 12} == {case.columns for heat in short for case in heat.cases}
        assert all(4 == len(heat.cases) for heat in short)
        assert (columns is None) == (len(short) < len(planned))


def test_ratios() -> None:
    """Every projection, the continuity check and other formats have the loop beside them. One case varies each of the
    partitions, the tables and the unusual messages, and all fixed rates are there.
    """
    planned = ratio_heats(RATIOS)
    compared = [heat for heat in planned if heat.cases[0].section == "contestants"]
    assert ["canal", "canal_dts", "shareplex", "qlik_json"] == [heat.cases[0].format for heat in compared]
    assert all(LOOP == heat.cases[-1].contestant and RATIOS.rounds == heat.rounds for heat in compared)
    services = {name for name in CONTESTANTS if "projection" in name} | {*DELIVERIES, LOOP}
    assert services == {case.contestant for case in compared[0].cases}
    cases = [case for heat in planned for case in heat.cases]
    assert {64} == {case.partitions for case in cases if case.section == "partitions"}
    assert {2_000} == {case.tables for case in cases if case.section == "tables"}
    assert {0.05} == {case.unusual for case in cases if case.section == "unusual"}
    assert {*RATES} == {case.rate for case in cases if case.section == "latency"}


def test_latency_at_fixed_rates() -> None:
    """Both deliveries and the loop have the same rates, with Canal messages. The smallest profile measures none."""
    for profile in (FULL, SHORT):
        fixed = [heat.cases for heat in heats(profile, list(WRITERS)) if heat.cases[0].section == "latency"]
        assert [[rate] * 3 for rate in RATES] == [[case.rate for case in cases] for cases in fixed]
        assert {(*DELIVERIES, LOOP)} == {tuple(case.contestant for case in cases) for cases in fixed}
    assert not any(case.rate for heat in heats(SHORT, ["shareplex"]) for case in heat.cases)
    assert not any(case.rate for heat in heats(SMALLEST, list(WRITERS)) for case in heat.cases)


def test_wide_messages_are_fewer() -> None:
    """A topic of 200 columns has less than twenty times the bytes. The continuity check sees no row twice."""
    for heat in heats(FULL, list(WRITERS)):
        spec = heat.spec(7)
        if heat.cases[0].rate:
            assert spec.messages > 0, "a topic that is filled at a rate repeats these messages"
            continue
        assert spec.messages <= heat.total
        assert heat.total * spec.columns <= 2 * FULL.messages * 12 * 2
        assert heat.cases[0].format != "canal_dts" or spec.messages == heat.total


def test_formats_by_name() -> None:
    """A prefix selects all formats that begin with it, a full name only that format. An unknown name is reported."""
    assert list(WRITERS) == formats_of([])
    assert ["qlik_json", "qlik_avro"] == formats_of(["qlik"])
    assert ["canal"] == formats_of(["canal"])
    assert ["shareplex", "qlik_avro"] == formats_of(["qlik_avro", "shareplex"])
    with pytest.raises(ValueError, match="no format oracle"):
        formats_of(["oracle"])
