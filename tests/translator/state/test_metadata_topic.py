"""Documents in the metadata topic are found under the source and key that wrote them."""

import pytest

from translator.state.contradiction_marks import PREFIX
from translator.state.metadata_topic import LearnedDocument, document_of, document_record


class Read:
    """The fields of a consumer record that are read."""

    def __init__(self, key: bytes | None, value: bytes | None) -> None:
        self.key = lambda: key
        self.value = lambda: value


def test_a_document() -> None:
    """A document's key can contain the separator between source and key."""
    record = document_record("erp", "a/b", b"{}")
    assert LearnedDocument("erp", "a/b", b"{}") == document_of(Read(record.key, record.value), {"erp"})


@pytest.mark.parametrize(
    ("key", "value"), [(b"erp/a", None), (b"shop/a", b"{}"), (PREFIX.encode() + b"erp", b"{}"), (None, b"{}")]
)
def test_none(key: bytes | None, value: bytes | None) -> None:
    """Tombstones, other sources, our own marks and records without a key are not documents."""
    assert None is document_of(Read(key, value), {"erp"})
