"""Hypothesis strategies for the contract: any event that a release can legally write."""

from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from cdc_core.envelope import (
    KEY_KINDS,
    KINDS,
    OPERATIONS,
    STATES,
    VARIANT_BASES,
    ChangeEvent,
    Ddl,
    Issue,
    Origin,
    Tx,
)
from cdc_core.position import position

T = TypeVar("T")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Any text that UTF-8 can encode, including control characters, quotes and emoji."""

INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.integers(0, 2**63 - 1)
SCALARS = st.none() | st.booleans() | INT64 | st.floats(allow_nan=False, allow_infinity=False) | TEXT
"""Any value of an image (message.Scalar)."""

IMAGES = st.dictionaries(TEXT, SCALARS, max_size=4)
IMAGE_TEXTS = IMAGES.map(lambda image: msgspec.json.encode(image).decode())
TEXTS = st.lists(TEXT, max_size=3)
FINGERPRINTS = st.text("0123456789abcdef", min_size=16, max_size=16)


def _maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | strategy


TXS = st.builds(Tx, TEXT, _maybe(INT64), _maybe(INT64), _maybe(st.booleans()))
DDLS = st.builds(Ddl, TEXT, _maybe(TEXT), _maybe(TEXTS), st.booleans())
ISSUES = st.builds(Issue, TEXT, TEXT, _maybe(TEXT))
ORIGINS = st.builds(Origin, TEXT, INT32, OFFSETS, INT32, INT32)


def events() -> st.SearchStrategy[ChangeEvent]:
    """Generate events with every field at its limits. The fields need not be consistent."""
    return st.builds(
        ChangeEvent,
        v=INT32,
        id=TEXT,
        kind=st.sampled_from(KINDS),
        op=_maybe(st.sampled_from(OPERATIONS)),
        source=TEXT,
        dialect=TEXT,
        variant=_maybe(TEXT),
        variant_basis=_maybe(st.sampled_from(VARIANT_BASES)),
        dbms=_maybe(TEXT),
        server=_maybe(TEXT),
        task=_maybe(TEXT),
        db=_maybe(TEXT),
        schema=_maybe(TEXT),
        table=_maybe(TEXT),
        pos=st.builds(position, OFFSETS, st.integers(0, 999_999)),
        pos_scope=TEXT,
        pos_native=_maybe(TEXT),
        ts_commit_us=_maybe(INT64),
        ts_capture_us=_maybe(INT64),
        ts_origin_us=INT64,
        key=_maybe(IMAGE_TEXTS),
        key_old=_maybe(IMAGE_TEXTS),
        key_kind=st.sampled_from(KEY_KINDS),
        before=_maybe(IMAGE_TEXTS),
        after=_maybe(IMAGE_TEXTS),
        before_state=st.sampled_from(STATES),
        after_state=st.sampled_from(STATES),
        changed=_maybe(TEXTS),
        unavailable=_maybe(TEXTS),
        issues=_maybe(st.lists(ISSUES, max_size=2)),
        schema_id=_maybe(FINGERPRINTS),
        tx=_maybe(TXS),
        ddl=_maybe(DDLS),
        origin=ORIGINS,
        notes=_maybe(TEXTS),
        ext=_maybe(st.dictionaries(TEXT, TEXT, max_size=3)),
    )
