"""Algorithms 1 to 5 of Goldstein and Hong against their definitions, and against our operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis import event, example, given
from hypothesis import strategies as st

from driving import Arriving, drive, standing_for
from headrace.algebra.nodes import Aggregate, Source
from headrace.elements import to_rows
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.reference.contents import Element, Payload, content_at
from headrace.reference.events import (
    Cti,
    Event,
    Insert,
    Retraction,
    Table,
    before,
    closed_up_to,
    content,
    is_ordered,
    is_perfect,
    is_valid,
    same_content,
    snapshots,
    sync,
    table_of,
    watermark,
)
from headrace.reference.speculative import Speculation
from headrace.schema import STRING, Field, Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain
from how_many import examples

END = Cti(INFINITY)


def counted(living: Counter[Payload]) -> Sequence[Payload]:
    """COUNT, which has no row where there is nothing to count."""
    return [(living.total(),)] if living else []


@st.composite
def valid_streams(draw: st.DrawFn, *, perfect: bool = False) -> list[Event]:
    """Valid streams: insertions, retractions of what is there, and CTIs, in an order that keeps the CTIs."""
    events: list[Event] = []
    promised = 0
    for _ in range(draw(st.integers(0, 9))):
        low = max([promised, *map(sync, events)]) if perfect else promised
        there = [row for row in table_of(events) if row[1] > promised]
        kinds = ["insert", "insert", "cti"] + (["retract"] if there and not perfect else [])
        match draw(st.sampled_from(kinds)):
            case "insert":
                start = draw(st.integers(low, low + 6))
                end = draw(st.integers(start + 1, start + 8) | st.just(INFINITY))
                events.append(Insert(start, end, (draw(st.sampled_from("ab")),)))
            case "retract":
                start, end, payload = draw(st.sampled_from(sorted(there)))
                first = max(start, promised)
                new_end = draw(st.integers(first, min(end - 1, first + 9)))
                events.append(Retraction(start, end, new_end, payload))
            case _:
                promised = draw(st.integers(low, low + 5))
                events.append(Cti(promised))
    return events


def run(events: Sequence[Event]) -> list[Event]:
    operator = Speculation(counted)
    for one in events:
        operator.process(one)
    return operator.output


AT_THE_CTI: list[Event] = [
    Insert(0, 10, ("a",)),
    Insert(5, 8, ("b",)),
    Insert(9, 12, ("a",)),
    Cti(5),
    Retraction(5, 8, 5, ("b",)),
]
"""The entry of 5 goes, and the output before it is no longer to be changed."""


@examples(67, 200)
@given(valid_streams())
@example(AT_THE_CTI)
def test_the_algorithms_are_progressive_and_their_output_is_valid(events: list[Event]) -> None:
    assert is_valid(events)
    # Definition 7, for the stream that ends; definition 8, for what its last CTI closes.
    assert same_content(table_of(run([*events, END])), snapshots(table_of(events), counted))
    assert is_valid(run([*events, END]))
    # Definition 8 takes the events with sync times below the last CTI. Where these lack a retraction in the
    # middle of a chain they are not a valid stream.
    closed = before(events, closed_up_to(events))
    if is_valid(closed):
        assert same_content(table_of(run([*closed, END])), snapshots(table_of(closed), counted))
    event(f"ordered: {is_ordered(events)}; cut into a stream: {is_valid(closed)}")


@examples(34, 100)
@given(valid_streams())
def test_what_is_said_below_the_watermark_is_what_follows_from_the_input(events: list[Event]) -> None:
    operator = Speculation(counted)
    for number, one in enumerate(events):
        operator.process(one)
        expected = snapshots(table_of(events[: number + 1]), counted)
        assert same_content(table_of(operator.output), expected, operator.watermark)


@examples(34, 100)
@given(valid_streams(perfect=True))
def test_perfect_input_makes_perfect_output(events: list[Event]) -> None:
    assert is_perfect(events)
    assert is_perfect(run([*events, END]))


@examples(34, 100)
@given(valid_streams())
def test_the_watermark_is_that_of_the_invariant(events: list[Event]) -> None:
    operator, expected = Speculation(counted), BEGINNING
    for number, one in enumerate(events):
        table = table_of(events[: number + 1])
        operator.process(one)
        match one:
            case Insert(start=start):
                expected = max(expected, start)
            case Cti(at=at):
                ends = {end for start, stop, _ in table for end in (start, stop) if end <= at}
                expected = max([expected, *ends])
            case Retraction():
                pass
        assert operator.watermark == expected
        assert watermark(operator.output) <= expected


def maximal(events: Sequence[Event]) -> list[Event]:
    """The operator that says at once all that follows from its input (section 3.5, minimum latency)."""
    output: list[Event] = []
    known: Table = Counter()
    for number in range(len(events)):
        wanted = snapshots(table_of(events[: number + 1]), counted)
        output += [Retraction(start, end, start, row) for start, end, row in (known - wanted).elements()]
        output += [Insert(start, end, row) for start, end, row in (wanted - known).elements()]
        known = wanted
    return output


def ultra_consistent(events: Sequence[Event]) -> list[Event]:
    """The operator that says a snapshot when a CTI has passed its end (definition 9)."""
    output: list[Event] = []
    said: Table = Counter()
    for number, one in enumerate(events):
        if isinstance(one, Cti):
            made = snapshots(table_of(events[: number + 1]), counted)
            # Ends that are still open may not stay: what lasts beyond the CTI may be cut anywhere.
            closed: Table = Counter({row: count for row, count in made.items() if row[1] <= one.at})
            output += [Insert(*row) for row in sorted((closed - said).elements())]
            said = closed | said
    return output


@examples(50, 150)
@given(valid_streams())
def test_who_speaks_sooner_says_more(events: list[Event]) -> None:
    """Theorems 8 and 9: the latency and the size of the output of three operators."""
    soonest, between, last = maximal(events), run(events), ultra_consistent(events)
    assert watermark(soonest) >= watermark(between) >= watermark(last)
    sizes = [sum(not isinstance(one, Cti) for one in output) for output in (soonest, between, last)]
    event(f"sizes differ: {len(set(sizes)) > 1}")
    assert sizes[0] >= sizes[1] >= sizes[2]
    assert is_perfect(last)
    assert is_valid(soonest)


STREAM = Source("s", Schema((Field("k", STRING),)), "t", TimeDomain.INTEGER)
COUNTED = Aggregate(STREAM, (), (("n", resolve_aggregate("COUNT", None)),))


def elements_of(events: Sequence[Event]) -> list[Element]:
    """Events as signed elements: a retraction takes away what it cuts off."""
    found: list[Element] = []
    for one in events:
        match one:
            case Insert(start=start, end=end, payload=payload):
                found.append((payload, start, end, 1))
            case Retraction(end=end, new_end=new_end, payload=payload):
                found.append((payload, new_end, end, -1))
            case Cti():
                pass
    return found


def epochs_of(events: Sequence[Event]) -> Iterator[Arriving]:
    """The events from one CTI to the next."""
    waiting: list[Event] = []
    for one in events:
        waiting.append(one)
        if isinstance(one, Cti):
            yield Arriving({"s": elements_of(waiting)}, {"s": one.at})
            waiting = []


@examples(20, 60)
@given(valid_streams())
def test_our_operator_says_what_the_algorithms_say(events: list[Event]) -> None:
    inputs = {"s": standing_for(STREAM, chronons=False, insert_only=False)}
    operator, said = Speculation(counted), 0
    found: list[Element] = []
    for emitted, heartbeat in drive(COUNTED, inputs, epochs_of([*events, END])):
        found += to_rows(emitted)
        while not (isinstance(one := [*events, END][said], Cti) and one.at == heartbeat):
            operator.process(one)
            said += 1
        operator.process(one)
        said += 1
        theirs = table_of(operator.output)
        for at in {end for start, stop, _ in theirs for end in (start, stop) if end < operator.watermark}:
            if at < heartbeat:
                assert content_at(found, at) == content(theirs, at)
