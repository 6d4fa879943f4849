"""Parts of a partition that a user selects."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from translator.errors import ConfigError, RetryableError
from translator.kafka.offset_ranges import Partitions, Range, narrowed

WHOLE = Range("raw.canal", 0, 10, 207)


@pytest.mark.parametrize(
    ("first", "end", "expected"),
    [(None, None, (10, 207)), (20, None, (20, 207)), (None, 20, (10, 20)), (20, 20, (20, 20)), (207, 207, (207, 207))],
)
def test_inside(first: int | None, end: int | None, expected: tuple[int, int]) -> None:
    """Without a selection, the range is the whole partition. A range can be empty, even at the end."""
    found = narrowed(WHOLE, first, end)
    assert expected == (found.first, found.end)


@pytest.mark.parametrize(
    ("whole", "first", "end", "said"),
    [
        (WHOLE, 99999, 100000, "raw.canal/0 has no offset 99999; it has 10 to 206"),
        (WHOLE, 99999, None, "raw.canal/0 has no offset 99999; it has 10 to 206"),
        (WHOLE, 207, 208, "raw.canal/0 has no offset 207; it has 10 to 206"),
        (WHOLE, 9, 10, "raw.canal/0 has no offset 9; it has 10 to 206"),
        (WHOLE, None, 300, "raw.canal/0 has no offset 299; it has 10 to 206"),
        (WHOLE, None, 3, "raw.canal/0 has no offset 2; it has 10 to 206"),
        (WHOLE, 30, 20, "offsets 30 to 20 of raw.canal/0: the end is before the beginning"),
        (Range("t", 1, 0, 0), 0, 1, "t/1 has no offset 0; it is empty, and the next record will have offset 0"),
        (Range("t", 1, 7, 7), 3, 4, "t/1 has no offset 3; it is empty, and the next record will have offset 7"),
    ],
)
def test_outside(whole: Range, first: int | None, end: int | None, said: str) -> None:
    """The error states the missing offset and the available ones."""
    with pytest.raises(ConfigError) as caught:
        narrowed(whole, first, end)
    assert said == str(caught.value)


class _Answers:
    """A consumer that raises these errors in turn, and then returns bounds."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return 3, 7


def test_a_leader_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is retried for a new topic and while the leader moves. Other errors are reported immediately."""
    partitions = Partitions({"bootstrap.servers": "nobody:1"}, "unused")
    moves = _Answers(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
    monkeypatch.setattr(partitions, "_consumer", moves)
    assert Range("t", 0, 3, 7) == partitions.bounds("t", 0)
    monkeypatch.setattr(partitions, "_consumer", _Answers(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(RetryableError, match="offsets of t/0: "):
        partitions.bounds("t", 0)
    monkeypatch.setattr("translator.kafka.offset_ranges._TIMEOUT", 0.0)
    monkeypatch.setattr(partitions, "_consumer", _Answers(*[KafkaError.NOT_LEADER_FOR_PARTITION] * 100))
    with pytest.raises(RetryableError, match="offsets of t/0: "):
        partitions.bounds("t", 0)
