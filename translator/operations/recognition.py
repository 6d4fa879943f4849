"""Recognize which product wrote a topic. Each dialect reads a sample, and the one that understands it is chosen."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from cdc_core.table_id import joined_name
from translator import dialects
from translator.dialects import DialectPlugin
from translator.errors import ErrorCode, MessageError
from translator.message import Learned, Limits, Message, Needs, RowChange, Setup, Skip, TableName
from translator.proposals import Certainty, Proposal, ReadMessage, Recognizer
from translator.translation.dead_letter import DeadLetter
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.translate import Result, Translator

# Every dialect accepts a message without a value or with an empty one.
_NOBODYS = frozenset({"tombstone", "empty", "null"})

# Error codes that show that a dialect recognizes the message that it rejects.
_KNOWN_BUT_REFUSED = frozenset(
    {ErrorCode.AMBIGUOUS_VARIANT, ErrorCode.TABLE_UNKNOWN, ErrorCode.ROW_NOT_SENT, ErrorCode.KEY_MISSING}
)


class RefusedMessages(Struct, frozen=True):
    """Messages rejected with one code.

    Args:
        reason: the reason for the first of these messages.
    """

    code: str
    count: int
    reason: str


class Verdict(Struct, frozen=True):
    """A summary of how well a dialect understood the sample of a topic.

    Args:
        sample: the messages that the dialect recognizes. For those that it translates, the changes are included.
        translated: number of messages that have changes or are known markers.
        learned: number of metadata messages.
        waiting: number of messages that wait for metadata from another message.
        unregistered: number of messages that need a registry schema, which was not provided.
        skipped: number of records without a value or with an empty one.
    """

    dialect: str
    options: Mapping[str, str | bool]
    sample: Sequence[ReadMessage]
    translated: int
    learned: int
    waiting: int
    unregistered: int
    refusals: Sequence[RefusedMessages]
    skipped: int = 0

    @property
    def rejected(self) -> int:
        """The number of messages that become dead letters."""
        return sum(refused.count for refused in self.refusals)

    @property
    def understood(self) -> int:
        return self.translated + self.learned

    @property
    def known(self) -> int:
        """The number of messages in this dialect, understood or not."""
        return self.understood + self.waiting + sum(r.count for r in self.refusals if r.code in _KNOWN_BUT_REFUSED)


class KeylessTable(Struct, frozen=True):
    """A table whose rows have no key of their own, with the observed columns in order."""

    name: str
    columns: Sequence[str]


class TopicFinding(Struct, frozen=True):
    """The product that writes the messages of a topic, and how it was recognized.

    Args:
        messages: number of messages in the sample, not counting those without a value.
        verdict: the recognized dialect's verdict, or None.
        why: the reason in words, for the operator.
        refusals: if no dialect recognized the messages, the reason of each dialect by name.
    """

    topic: str
    messages: int
    verdict: Verdict | None
    certainty: Certainty
    why: str
    proposals: Sequence[Proposal] = ()
    keyless: Sequence[KeylessTable] = ()
    refusals: Mapping[str, str] = {}

    @property
    def dialect(self) -> str | None:
        """The recognized dialect."""
        return None if self.verdict is None else self.verdict.dialect

    @property
    def options(self) -> Mapping[str, str | bool]:
        """The options that the source needs, as far as the sample reveals them."""
        tried = {} if self.verdict is None else self.verdict.options
        return {**tried, **{p.option: p.value for p in self.proposals if p.value is not None}}


def recognise(
    samples: Mapping[str, Sequence[Message]], known: Mapping[str, DialectPlugin] = dialects.DIALECTS
) -> list[TopicFinding]:
    """Return one finding per topic, in order. Metadata messages from one topic also apply to the others.

    Args:
        known: the dialects to try, by name. A dialect without a recognizer is never recognized.
    """
    everything = [message for sample in samples.values() for message in sample]
    trials = [
        _Trial(name, options, everything)
        for name, plugin in known.items()
        if plugin.recognizer is not None
        for options in plugin.recognizer.attempts
    ]
    return [_finding(topic, sample, trials, known) for topic, sample in samples.items()]


class _Trial:
    """A dialect with one set of options. It has already learned the metadata in all messages."""

    def __init__(self, dialect: str, options: Mapping[str, str | bool], messages: Iterable[Message]) -> None:
        self._options = options
        source, limits, catalog = "sample", Limits(), MetadataCatalog()
        built = dialects.build(dialect, Setup(source, limits, (), catalog.lookup(source)), options)
        self._translator = Translator(source, built, limits)
        teach(self._translator, catalog, messages)

    def judge(self, messages: Iterable[Message]) -> Verdict:
        return judge(self._translator, messages, self._options)


def teach(translator: Translator, catalog: MetadataCatalog, messages: Iterable[Message]) -> None:
    """Let the source of a translator learn all metadata messages, whichever topic they are in. `judge` reports those it
    rejects.
    """
    for message in _until_overdue(translator, messages):
        if lesson := translator.lesson(message):
            with contextlib.suppress(MessageError):
                catalog.register(translator, lesson.key, lesson.document)


def _until_overdue(translator: Translator, messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages until a plug-in takes too long. It would take just as long for each of the other messages."""
    for message in messages:
        yield message
        if getattr(translator.dialect, "overdue", False):
            return


def judge(translator: Translator, messages: Iterable[Message], options: Mapping[str, str | bool]) -> Verdict:
    """Read messages with a translator that has learned all metadata."""
    sample: list[ReadMessage] = []
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for message in _until_overdue(translator, messages):
        match _translated(translator, message):
            case DeadLetter(code=code, reason=reason):
                refused[code] += 1
                reasons.setdefault(code, reason)
                if code in _KNOWN_BUT_REFUSED:
                    sample.append(ReadMessage(message, ()))
            case Skip(reason=reason):
                counts["skipped" if reason in _NOBODYS else "translated"] += 1
            case Learned():
                counts["learned"] += 1
            case Needs(registry_id=registered):
                counts["waiting" if registered is None else "unregistered"] += 1
            case events:
                counts["translated"] += 1
                sample.append(ReadMessage(message, events.changes))
    return Verdict(
        translator.dialect.name,
        options,
        sample,
        translated=counts["translated"],
        learned=counts["learned"],
        waiting=counts["waiting"],
        unregistered=counts["unregistered"],
        refusals=[RefusedMessages(code, count, reasons[code]) for code, count in refused.most_common()],
        skipped=counts["skipped"],
    )


def _translated(translator: Translator, message: Message) -> Result:
    """Translate a message. If its metadata cannot be read, it is a dead letter, as in the service."""
    result = translator.translate(message)
    if isinstance(result, Learned):
        try:
            MetadataCatalog().register(translator, result.key, result.document)
        except MessageError as error:
            return translator.dead(message, error)
    return result


def _finding(
    topic: str, sample: Sequence[Message], trials: Sequence[_Trial], known: Mapping[str, DialectPlugin]
) -> TopicFinding:
    messages = [message for message in sample if message.value]
    best: dict[str, Verdict] = {}
    for verdict in (trial.judge(messages) for trial in trials):
        # The first attempt is the simplest. Another attempt is chosen only if its options let it read more.
        if verdict.dialect not in best or verdict.known > best[verdict.dialect].known:
            best[verdict.dialect] = verdict
    if not messages:
        return TopicFinding(topic, 0, None, "unknown", "it contains no messages with a value")
    understand = [verdict for verdict in best.values() if verdict.understood]
    know = understand or [verdict for verdict in best.values() if verdict.known]
    if len(know) == 1:
        return _recognised(topic, len(messages), know[0], known[know[0].dialect].recognizer)
    if know:
        shares = ", ".join(f"{verdict.dialect} {verdict.known}" for verdict in know)
        return TopicFinding(topic, len(messages), None, "unknown", f"several dialects recognise its messages: {shares}")
    if (framed := best.get("qlik")) is not None and framed.unregistered:
        why = (
            f"{framed.unregistered} messages are Avro with a schema registry, so only their schemas could identify "
            "the product. Qlik Replicate writes such messages, but so do others"
        )
        return TopicFinding(topic, len(messages), None, "unknown", why)
    refusals = {verdict.dialect: verdict.refusals[0].reason for verdict in best.values() if verdict.refusals}
    why = f"no dialect recognises its messages: {'; '.join(refusals.values())}"
    return TopicFinding(topic, len(messages), None, "unknown", why, refusals=refusals)


def _recognised(topic: str, messages: int, verdict: Verdict, recognizer: Recognizer | None) -> TopicFinding:
    certainty: Certainty = "certain" if verdict.understood else "likely"
    why = f"{verdict.known} of {messages} messages are {verdict.dialect}"
    proposals = recognizer.propose(verdict.sample) if recognizer is not None and verdict.sample else []
    return TopicFinding(topic, messages, verdict, certainty, why, proposals, _keyless(verdict.sample))


def _keyless(sample: Sequence[ReadMessage]) -> list[KeylessTable]:
    """Return the tables with rows that have no certain key."""
    columns: dict[TableName, dict[str, None]] = {}
    keyless: dict[TableName, None] = {}
    for change in (change for read in sample for change in read.changes if isinstance(change, RowChange)):
        columns.setdefault(change.table, {}).update(dict.fromkeys({**(change.before or {}), **(change.after or {})}))
        if not change.key_columns:
            keyless[change.table] = None
    return [KeylessTable(joined_name(table.db, table.schema, table.table), list(columns[table])) for table in keyless]
