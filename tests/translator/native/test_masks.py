"""A table with a masked column takes the plain path, and other tables the native path."""

import pytest

from bench.steps.shop_updates import DialectFeed, feed
from tests.translator.native import needs_extension
from tests.translator.native.test_equality import agree
from translator.codecs.avro import AvroCodec
from translator.codecs.json import JsonCodec
from translator.codecs.record import Record
from translator.config.mask_rules import MaskRule
from translator.dialects import build
from translator.message import DeclaredTable, Limits, Message, Setup
from translator.translation.masking import SourceMasks
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import Encoder, Translator

pytestmark = needs_extension

DIALECTS = ("canal", "dts_avro", "qlik", "shareplex")
ROOMY = 1_000_000


OUTPUTS: list[tuple[Encoder, int]] = [(AvroCodec(), ROOMY), (JsonCodec(), ROOMY)]


def taken(found: DialectFeed, masks: SourceMasks | None) -> list[list[list[Record]] | str]:
    """Return the records of each native message, or the reason why it is not native."""
    translator = Translator("source", found.dialect, Limits(), None, masks)
    path = native_path(translator, OUTPUTS)
    assert isinstance(path, NativePath)
    messages: list[Message] = [*found.messages]
    return [one if isinstance(one, str) else one.outputs for one in path.take(messages)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "rule",
    [
        MaskRule("hash", table="crm.*"),
        MaskRule("hash", column="ssn"),
        MaskRule("hash", type="geometry"),
        MaskRule("drop", source="source", table="*", column="passport*"),
    ],
    ids=["another table", "another column", "another type", "a pattern"],
)
def test_what_masks_do_not_touch_is_taken(dialect: str, rule: MaskRule) -> None:
    """Unmasked tables have the same bytes as without masks."""
    found = feed(dialect, 12, 40)
    wanted = taken(found, None)
    assert sum(isinstance(one, list) for one in wanted) > 30
    masks = SourceMasks("source", [rule], b"k" * 32)
    assert wanted == taken(feed(dialect, 12, 40), masks)
    translator = Translator("source", found.dialect, Limits(), None, masks)
    path = native_path(translator, OUTPUTS)
    assert isinstance(path, NativePath)
    codecs = [codec for codec, _ in OUTPUTS]
    assert "taken" in {agree(translator, path, message, codecs) for message in found.messages}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("rule", [MaskRule("hash", column="COLUMN_2"), MaskRule("hash", type="string")])
def test_a_table_with_a_masked_column_is_not(dialect: str, rule: MaskRule) -> None:
    masks = SourceMasks("source", [MaskRule("keep", column="id"), rule], b"k" * 32)
    assert {"layout"} == {one if isinstance(one, str) else "taken" for one in taken(feed(dialect, 12, 40), masks)}


def test_rows_that_may_have_any_column_are_not() -> None:
    """SharePlex does not list its columns in advance unless the operator declares them."""
    found = feed("shareplex", 12, 40)

    dialect = build("shareplex", Setup("source", tables=(DeclaredTable("*", ("id",)),)), {"preset": "quest"})
    open_feed = DialectFeed(dialect, found.messages)
    assert any(isinstance(one, list) for one in taken(open_feed, None))
    masks = SourceMasks("source", [MaskRule("hash", column="ssn")], b"k" * 32)
    assert {"layout"} == {one if isinstance(one, str) else "taken" for one in taken(open_feed, masks)}
