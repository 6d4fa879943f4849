"""The choice of the engine for a table, with its reason."""

from __future__ import annotations

import pytest

from spark_sink.errors import Reason, Refused
from spark_sink.schema.engine_choice import (
    BY_FILE,
    FUSED_FEATURES,
    SPARK_FEATURES,
    Choice,
    Engine,
    EngineRules,
    choose,
    features,
)
from spark_sink.schema.table_spec import Mode

NO_RULES = EngineRules()


def chosen(
    has: set[str],
    size: int = 0,
    rules: EngineRules = NO_RULES,
    name: str = "shop_sales.orders",
    mode: Mode = Mode.MIRROR,
) -> Choice:
    return choose(name, mode, frozenset(has), lambda: size, rules)


def test_the_rule() -> None:
    """deltalake writes a plain table. Spark writes one above the size setting or with a feature that deltalake cannot
    write. The reason states which.
    """
    assert Engine.FUSED == chosen(set(FUSED_FEATURES)).engine
    assert Engine.FUSED == chosen(set(), size=10**9).engine
    assert Choice(Engine.SPARK, "more than 1000 MB (tables.fused_megabytes)") == chosen(set(), size=10**9 + 1)
    assert Engine.SPARK == chosen(set(), size=1, rules=EngineRules(fused_megabytes=0)).engine
    reason = "deltalake cannot write: clustering, domainMetadata"
    assert Choice(Engine.SPARK, reason) == chosen({"domainMetadata", "clustering", "invariants"})


@pytest.mark.parametrize("feature", sorted(SPARK_FEATURES - FUSED_FEATURES))
def test_a_feature_that_deltalake_does_not_write(feature: str) -> None:
    """Each such feature makes Spark write the table. It is reported if the configuration says otherwise."""
    assert Engine.SPARK == chosen({feature}).engine
    with pytest.raises(Refused, match=f"fused, but deltalake cannot write: {feature}") as refused:
        chosen({feature}, rules=EngineRules({"s*": Engine.FUSED}))
    assert Reason.TABLE_REFUSED == refused.value.reason


def test_what_nobody_writes() -> None:
    """An unknown feature, or one whose table only Spark could read, is rejected for any configured engine."""
    for rules in (NO_RULES, EngineRules({"*": Engine.SPARK})):
        with pytest.raises(Refused, match="cannot be written: novelty"):
            chosen({"novelty", "deletionVectors"}, rules=rules)
        for feature in BY_FILE:
            with pytest.raises(Refused, match=r"cannot be read together: .*deletionVectors"):
                chosen({feature, "deletionVectors"}, rules=rules)


def test_the_configuration_decides() -> None:
    """The table's name decides first, then the first matching pattern. The size is ignored then."""
    rules = EngineRules(
        {"*.log_*": Engine.FUSED, "shop_*": Engine.SPARK, "*": Engine.FUSED, "shop_sales.a": Engine.FUSED},
        fused_megabytes=0,
    )
    names = {
        "shop_sales.orders": "spark",
        "shop_sales.log_1": "fused",
        "Shop_sales.orders": "spark",
        "shop_sales.a": "fused",
        "s.o": "fused",
    }
    for name, engine in names.items():
        assert engine == chosen(set(), size=1, rules=rules, name=name).engine
    assert "it is set in tables.engines" == chosen(set(), rules=rules).reason


@pytest.mark.parametrize("mode", [Mode.HISTORY, Mode.CHANGELOG])
def test_other_modes(mode: Mode) -> None:
    """Only deltalake writes other modes than mirrors, whatever the size and configuration, or nobody does."""
    rules = EngineRules({"*": Engine.SPARK}, fused_megabytes=0)
    choice = chosen({"invariants"}, size=1, rules=rules, mode=mode)
    assert Choice(Engine.FUSED, f"only deltalake writes tables with mode {mode.value}") == choice
    with pytest.raises(Refused, match=f"mode {mode.value} are written by deltalake, which cannot write: clustering"):
        chosen({"clustering"}, rules=rules, mode=mode)


def test_features_of_older_protocols() -> None:
    """A writer version before 7 implies unlisted features. deltalake can write those of version 2."""
    assert frozenset() == features(2, frozenset())
    assert {"checkConstraints"} == features(3, frozenset())
    expected = {"checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping", "identityColumns"}
    assert expected == features(6, frozenset())
    assert {"invariants"} == features(7, frozenset({"invariants"}))
