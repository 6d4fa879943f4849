"""Dead letters keep the original record as far as the topic allows."""

import hashlib

import pytest

from translator.codecs.record import Record, record_size
from translator.errors import ErrorCode
from translator.message import Message
from translator.translation.dead_letter import DeadLetter, Letter, dead_letter_record, read_dead_letter

DEAD = DeadLetter(ErrorCode.MISSING_FIELD, "canal: data is missing")
OUR_HEADERS = [
    ("cdc-error-code", b"MISSING_FIELD"),
    ("cdc-error-message", b"canal: data is missing"),
    ("cdc-error-source", b"shop"),
    ("cdc-origin-topic", b"raw.shop"),
    ("cdc-origin-topic-id", b"Tq1"),
    ("cdc-origin-partition", b"3"),
    ("cdc-origin-offset", b"42"),
    ("cdc-origin-timestamp", b"1700000000500"),
    ("cdc-version", b"0.1.0"),
    ("cdc-format", b"1"),
]
BODY = b"\xff" * 10_000


class TestDeadLetterRecord:
    @pytest.fixture
    def message(self) -> Message:
        """Return a record with a binary body and its own headers, one of them twice."""
        return Message("raw.shop", 3, 42, 1_700_000_000_500, b"k", BODY, (("h", b"1"), ("h", None)), "Tq1")

    def test_original_and_reason(self, message: Message) -> None:
        """Key, value and headers are unchanged, followed by our headers."""
        record = dead_letter_record(message, DEAD, "shop", "0.1.0", 1_000_000)
        assert Record(b"k", BODY, [("h", b"1"), ("h", None), *OUR_HEADERS]) == record

    def test_tombstone(self) -> None:
        """A null value remains null and does not become empty."""
        record = dead_letter_record(Message("t", 0, 0, 0, None, None), DEAD, "shop", "0.1.0", 1_000_000)
        assert (None, None) == (record.key, record.value)

    def test_too_large(self, message: Message) -> None:
        """A body that does not fit is replaced by its SHA-256 and size. The original remains at its origin."""
        record = dead_letter_record(message, DEAD, "shop", "0.1.0", 5_000)
        assert (b"k", None) == (record.key, record.value)
        stand_in = [("cdc-body-sha256", hashlib.sha256(BODY).hexdigest().encode()), ("cdc-body-bytes", b"10000")]
        assert [("h", b"1"), ("h", None), *OUR_HEADERS, *stand_in] == record.headers

    def test_headers_too_large(self) -> None:
        """If a record's own key or headers do not fit, only our headers are written. It must never stop the stream."""
        message = Message("t", 0, 0, 0, b"k", b"v", (("h", b"x" * 10_000),))
        record = dead_letter_record(message, DEAD, "shop", "0.1.0", 5_000)
        assert (None, None) == (record.key, record.value)
        assert "h" not in dict(record.headers)
        assert record_size(record) <= 5_000

    def test_the_limit_itself_fits(self, message: Message) -> None:
        """A record of exactly the limit is kept. With one byte less, it is not."""
        size = record_size(dead_letter_record(message, DEAD, "shop", "0.1.0", 1_000_000))
        assert BODY == dead_letter_record(message, DEAD, "shop", "0.1.0", size).value
        assert None is dead_letter_record(message, DEAD, "shop", "0.1.0", size - 1).value

    def test_reason_in_any_language(self) -> None:
        """A reason can quote names in any script."""
        dead = DeadLetter(ErrorCode.TABLE_UNKNOWN, "名")
        record = dead_letter_record(Message("t", 0, 0, 0, None, b"v"), dead, "shop", "0.1.0", 1_000_000)
        assert "名".encode() == dict(record.headers)["cdc-error-message"]


class TestReadDeadLetter:
    @staticmethod
    def again(record: Record) -> Letter:
        """Return the record read back."""
        headers = [(name, value.encode() if isinstance(value, str) else value) for name, value in record.headers]
        letter = read_dead_letter(record.key, record.value, headers)
        assert letter is not None
        return letter

    @pytest.mark.parametrize("value", [BODY, b"", None])
    def test_the_message_comes_back(self, value: bytes | None) -> None:
        """Coordinates, topic id, key, value and headers are restored, which is all that a translation depends on."""
        message = Message("raw.shop", 3, 42, -1, None, value, (("h", b"1"), ("h", None)), "Tq1")
        letter = self.again(dead_letter_record(message, DEAD, "shop", "0.1.0", 1_000_000, "cdc.debezium"))
        assert message == letter.message
        assert (DEAD.code, DEAD.reason, "shop", "0.1.0") == (letter.code, letter.reason, letter.source, letter.version)
        assert ("cdc.debezium", None) == (letter.output, letter.body_bytes)

    def test_a_body_that_did_not_fit(self) -> None:
        """This is recorded, so that the letter is not taken for a tombstone."""
        message = Message("t", 0, 0, 0, b"k", BODY)
        assert len(BODY) == self.again(dead_letter_record(message, DEAD, "s", "0", 5_000)).body_bytes

    def test_a_dead_letter_of_a_dead_letter(self) -> None:
        """Headers with our names that came with the message stay separate from our own."""
        first = dead_letter_record(Message("old", 1, 1, 1, None, b"v"), DEAD, "shop", "0.0.9", 1_000_000, "projection")
        headers = tuple((name, value) for name, value in first.headers if not isinstance(value, str))
        message = Message("new", 2, 2, 2, None, b"v", headers, "Tq2")
        letter = self.again(dead_letter_record(message, DEAD, "shop", "0.1.0", 1_000_000))
        assert (message, None) == (letter.message, letter.output)

    def test_without_the_id_of_the_topic(self) -> None:
        """A letter of a release that did not write the id identifies no topic instance."""
        headers = [pair for pair in OUR_HEADERS if pair[0] != "cdc-origin-topic-id"]
        assert "-" == self.again(Record(None, b"v", [*headers])).message.topic_id

    @pytest.mark.parametrize(
        "headers",
        [[], OUR_HEADERS[:-2], [(name, b"x") for name, _ in OUR_HEADERS]],
        ids=["none", "one is missing", "no numbers"],
    )
    def test_no_dead_letter(self, headers: list[tuple[str, bytes | None]]) -> None:
        """Other records in the topic are not taken for dead letters."""
        assert None is read_dead_letter(None, b"v", headers)
