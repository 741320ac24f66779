"""Filter rows before they are united, subtracted or sampled."""

from __future__ import annotations

from headrace.algebra.nodes import Filter, Finalize, Plan, Sample, SetOperation, Union, inputs_of, with_inputs


def push_filter_below_union(plan: Plan) -> Plan:
    """Move a Filter into every input of a Union (thesis, rule 10.5) or of another set operation.

    Corrections are taken off a stream row by row, and so also those of the chosen rows alone. Equal rows are
    all chosen or none, and so are numbered for a sample as before.

    Before: `SELECT * FROM (SELECT x FROM a UNION ALL SELECT x FROM b) WHERE x > 1`
    After: `SELECT x FROM a WHERE x > 1 UNION ALL SELECT x FROM b WHERE x > 1`

    Under a set operation or a sample rows are asked that are not in its result, so there may be more dead
    letters.
    """
    match plan:
        case Filter(input=(Union() | SetOperation() | Finalize() | Sample()) as below, predicate=predicate):
            return with_inputs(below, tuple(Filter(part, predicate) for part in inputs_of(below)))
        case _:
            return plan
