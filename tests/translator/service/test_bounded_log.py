"""Frequent log lines of one kind are limited, and omissions are reported."""

from __future__ import annotations

from typing import Any

from translator.service.bounded_log import SECONDS, BoundedLog


def test_a_kind_has_its_share_of_a_minute() -> None:
    """The next line of a kind reports how many were omitted. Each kind has its own limit."""
    now = 100.0
    told: list[tuple[str, dict[str, Any]]] = []
    log = BoundedLog(lambda text, **fields: told.append((text, fields)), 2, lambda: now)
    for number in range(5):
        log.tell("dead letter", "erp", offset=number)
    log.tell("dead letter", "crm", offset=9)
    assert [("dead letter", {"offset": offset}) for offset in (0, 1, 9)] == told
    now += SECONDS
    log.tell("dead letter", "erp", offset=5)
    log.tell("dead letter", "erp", offset=6)
    assert [("dead letter", {"offset": 5, "left_out": 3}), ("dead letter", {"offset": 6})] == told[3:]
