"""Topic names derived from table names are legal and never equal for two tables."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translator.config.topic_template import MAX_LENGTH, TopicTemplate, template_of

EACH = TopicTemplate.parse("tables.{source}.{table}")
LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}")

# Few characters, so that similar names are frequent.
LEVELS = st.text(alphabet="ab._-0/ä\ud800", min_size=1, max_size=4) | st.text(min_size=1)
TABLES = st.tuples(LEVELS, st.none() | LEVELS, st.just(None), LEVELS) | st.tuples(LEVELS, LEVELS, LEVELS, LEVELS)


@pytest.mark.parametrize(
    ("template", "topic"),
    [
        ("tables.{source}.{table}", "tables.shop.db.dbo.orders"),
        ("tables.{table}", "tables.db.dbo.orders"),
        ("by-source_{source}", "by-source_shop"),
    ],
)
def test_a_plain_name_is_taken_as_it_is(template: str, topic: str) -> None:
    assert topic == TopicTemplate.parse(template).topic("shop", "db", "dbo", "orders")


def test_levels_that_a_table_does_not_have_are_left_out() -> None:
    assert "tables.shop.db.orders" == EACH.topic("shop", "db", None, "orders")
    assert "tables.shop.dbo.orders" == EACH.topic("shop", None, "dbo", "orders")


@pytest.mark.parametrize(
    ("table", "begins"),
    [
        ("order lines", "tables.shop.db.dbo.order_lines-"),
        ("Aufträge", "tables.shop.db.dbo.Auftr_ge-"),
        ("a.b", "tables.shop.db.dbo.a_b-"),
        ("x-0123456789ab", "tables.shop.db.dbo.x-0123456789ab-"),
        ("t" * 300, "tables.shop.db.dbo.ttt"),
    ],
)
def test_what_is_changed_is_marked(table: str, begins: str) -> None:
    """A changed name gets a digest of its levels, which is the same in every process and forever."""
    topic = EACH.topic("shop", "db", "dbo", table)
    assert topic.startswith(begins)
    assert re.search("-[0-9a-f]{12}$", topic)
    assert len(topic) <= MAX_LENGTH


def test_the_digest_stays() -> None:
    """A name that changed after an upgrade would be another topic."""
    assert "tables.shop.db.dbo.order_lines-70bf7db4cd04" == EACH.topic("shop", "db", "dbo", "order lines")


@given(TABLES, TABLES)
def test_two_tables_never_meet(one: tuple[str, str | None, str | None, str], other: tuple[str, str, str, str]) -> None:
    topics = [EACH.topic(*levels) for levels in (one, other)]
    assert all(map(LEGAL.fullmatch, topics))
    assert (topics[0] == topics[1]) == (one == other)


def test_points_do_not_move_between_levels() -> None:
    split = [EACH.topic("s", "a.b", None, "c"), EACH.topic("s", "a", None, "b.c"), EACH.topic("s", "a", "b", "c")]
    assert 3 == len(set(split))


@pytest.mark.parametrize(
    "text",
    [
        "{table}",
        "x{table}",
        "..{table}",
        "x.{name}",
        "x.{table}.y",
        "x.{table}{source}",
        "ä.{table}",
        "x}",
        f"{'a' * 180}.{{table}}",
    ],
)
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a topic template"):
        template_of(text)


def test_a_name_is_no_template() -> None:
    assert None is template_of("cdc.debezium")
