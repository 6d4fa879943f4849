"""What the process knows in addition to the messages."""

import pytest

from cdc_core.envelope import TableSchema
from tests.translator.service._lessons import Lesson, Lessons
from translator.errors import ErrorCode, MessageError
from translator.message import Message, Outcome, Setup, Skip
from translator.translation.metadata_catalog import REMEMBERED, MetadataCatalog


class Reader:
    """A dialect whose metadata documents are text."""

    name = "reader"

    def decode(self, message: Message) -> Outcome:
        return Skip("nothing")

    def learn(self, key: str, document: bytes) -> object:
        return document.decode()


@pytest.fixture
def catalog() -> MetadataCatalog:
    """An empty catalog."""
    return MetadataCatalog()


class TestSchemas:
    def test_announced(self, catalog: MetadataCatalog) -> None:
        """A row can reference a schema only after the schemas topic has it."""
        schema = TableSchema.of("shop", "shop", None, "orders", [], "none")
        assert not catalog.is_announced(schema.topic_key)
        catalog.announced(schema.topic_key)
        assert catalog.is_announced(schema.topic_key)

    def test_of_its_table(self, catalog: MetadataCatalog) -> None:
        """Equal columns of another table or source are announced separately."""
        catalog.announced(TableSchema.of("shop", "shop", None, "orders", [], "none").topic_key)
        for source, table in (("till", "orders"), ("shop", "copies")):
            assert not catalog.is_announced(TableSchema.of(source, "shop", None, table, [], "none").topic_key)

    def test_equal_objects(self, catalog: MetadataCatalog) -> None:
        """Another object with the same content counts as announced."""
        one, other = (TableSchema.of("shop", "shop", None, "orders", [], "none") for _ in range(2))
        catalog.announced(one.topic_key)
        assert [True] * 4 == [catalog.is_announced(schema.topic_key) for schema in (one, other, one, other)]


class TestMetadata:
    def test_look_up(self, catalog: MetadataCatalog) -> None:
        """A lookup obtained earlier finds what is learned later, and nothing before that."""
        look_up = catalog.lookup("shop")
        assert None is look_up("8FB9")
        catalog.learn("shop", "8FB9", b"columns", Reader())
        assert "columns" == look_up("8FB9")

    def test_of_its_source(self, catalog: MetadataCatalog) -> None:
        """The same id in two sources has two meanings."""
        catalog.learn("shop", "1", b"orders", Reader())
        catalog.learn("till", "1", b"receipts", Reader())
        assert ["orders", "receipts"] == [catalog.lookup(source)("1") for source in ("shop", "till")]

    def test_learned_again(self, catalog: MetadataCatalog) -> None:
        """Learning a document again changes nothing."""
        for _ in range(2):
            catalog.learn("shop", "1", b"orders", Reader())
        assert "orders" == catalog.lookup("shop")("1")

    def test_given_up(self, catalog: MetadataCatalog) -> None:
        """After one failed wait, no message of this source waits until the metadata arrives."""
        catalog.give_up("shop", "1")
        assert [True, False, False] == [
            catalog.is_given_up(*key) for key in (("shop", "1"), ("shop", "2"), ("till", "1"))
        ]
        catalog.learn("shop", "1", b"orders", Reader())
        assert not catalog.is_given_up("shop", "1")


class TestConflicts:
    @pytest.mark.parametrize("documents", ["old newest older", "newest older old", "older old newest"])
    def test_the_newest_stands(self, documents: str) -> None:
        """In any order of an id's documents, each different one is reported, and the newest is kept."""
        order, told = documents.split(), list[tuple[str, str]]()
        catalog = MetadataCatalog(lambda source, key: told.append((source, key)))
        kept = [catalog.learn("shop", "1", text.encode(), Lessons(Setup("shop"))) for text in order]
        assert Lesson("newest") == catalog.lookup("shop")("1")
        assert b"newest" == catalog.document("shop", "1")
        assert [("shop", "1")] * 2 == told
        assert kept[order.index("newest")]
        assert not any(kept[order.index("newest") + 1 :])

    def test_published_again(self) -> None:
        """A later publication that does not affect reading is not a conflict."""
        told: list[str] = []
        catalog = MetadataCatalog(lambda source, key: told.append(key))
        for text in ("text#monday", "text#wednesday"):
            assert catalog.learn("shop", "1", text.encode(), Lessons(Setup("shop")))
        assert [] == told

    def test_without_versions(self, catalog: MetadataCatalog) -> None:
        """For metadata without versions, the last one is kept."""
        for text in (b"longer", b"last"):
            assert catalog.learn("shop", "1", text, Reader())
        assert "last" == catalog.lookup("shop")("1")

    def test_other_ids(self) -> None:
        """All ids are kept, because older ones are needed when their rows are read again."""
        told: list[str] = []
        catalog = MetadataCatalog(lambda source, key: told.append(key))
        for key in ("1", "2"):
            catalog.learn("shop", key, key.encode(), Lessons(Setup("shop")))
        assert [Lesson("1"), Lesson("2")] == [catalog.lookup("shop")(key) for key in ("1", "2")]
        assert [] == told


class TestRefused:
    def test_until_it_is_learned(self, catalog: MetadataCatalog) -> None:
        """A refusal is remembered per source until the document can be read."""
        reason = MessageError(ErrorCode.LIMIT_EXCEEDED, "too deep")
        catalog.refuse("shop", "7", reason)
        assert [reason, None, None] == [
            catalog.refusal(*name) for name in (("shop", "7"), ("till", "7"), ("shop", "8"))
        ]
        catalog.learn("shop", "7", b"flat", Reader())
        assert None is catalog.refusal("shop", "7")

    def test_bounded(self, catalog: MetadataCatalog) -> None:
        """Messages can contain any key, so the oldest are forgotten."""
        for number in range(REMEMBERED + 5):
            catalog.give_up("shop", str(number))
        assert [False, True] == [catalog.is_given_up("shop", str(number)) for number in (4, 5)]
