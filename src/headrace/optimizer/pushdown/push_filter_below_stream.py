"""Filter rows before it is asked which of them are new."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.nodes import Filter, Istream, Plan


def push_filter_below_stream(plan: Plan) -> Plan:
    """Move a Filter below an Istream: which rows it keeps depends on their values alone.

    Before: `SELECT * FROM ISTREAM(SELECT * FROM bid WINDOW(RANGE 10 MINUTES)) WHERE price > 1`
    After: `ISTREAM(SELECT * FROM bid WINDOW(RANGE 10 MINUTES) WHERE price > 1)`

    Rows that were there at the instant before as well, and so are not new, are asked, too.
    """
    match plan:
        case Filter(input=Istream() as stream, predicate=predicate):
            return replace(stream, input=Filter(stream.input, predicate))
        case _:
            return plan
