"""The partition for a raw partition: Kafka's own hash, with consecutive partitions for each topic."""

import pytest

from translator.kafka.partitioner import output_partition, output_place


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        # From Kafka's own tests of murmur2 (UtilsTest.testMurmur2), as signed 32-bit integers.
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_the_hash_is_that_of_kafka(name: str, hashed: int) -> None:
    """Anybody can compute where the events of a raw topic are (docs/operate/topics.md)."""
    assert output_place(name, 0) == hashed & 0x7FFFFFFF


def test_partitions_of_a_topic_go_side_by_side() -> None:
    """Four raw partitions map to four different partitions, and a fifth starts over."""
    found = [output_partition("erp.hr", number, 4) for number in range(5)]
    assert ([0, 1, 2, 3], found[0]) == (sorted(found[:4]), found[4])
