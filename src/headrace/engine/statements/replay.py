"""REPLAY DEAD LETTERS OF: rows that were set apart are input once more."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from headrace.algebra.letters import letters_schema
from headrace.algebra.nodes import Filter, Plan, Project, Source
from headrace.elements import BoolArray
from headrace.engine.access.policy import Policy
from headrace.engine.run.core import Core
from headrace.errors import LanguageError, Position
from headrace.expressions.evaluation.evaluate import predicate_mask
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.statements.statements import Replay
from headrace.language.syntax import NamedTable, SelectQuery, StarItem
from headrace.operators.conditions import evaluate_condition
from headrace.runtime.driver.kept.replay import Answer, Choose, Replayed
from headrace.runtime.writing.texts import count
from headrace.time import TimeDomain


def replayed(core: Core, statement: Replay, policy: Policy) -> str:
    """Take dead letters of a stream once more; what became of them, as text.

    Args:
        core: the database.
        statement: which of them.
        policy: what its condition may call.

    Raises:
        LanguageError: there is no such stream, the condition is wrong, or no endless run is going on.
        UserError: no query reads the stream, or its dead letters are not kept.
    """
    info = core.definitions.source_stream(statement.stream)
    chosen = _chosen(info, statement, policy.visible(core.definitions.catalog))
    if core.execution is None or not core.running:
        raise LanguageError(
            "dead letters become input of a run that goes on, and none does",
            position=statement.position,
            hint="call start() first; after run() all answers are final",
        )
    return _told(info.name, core.execution.replay(info.name, chosen))


def _told(stream: str, found: Replayed) -> str:
    """What became of dead letters, with a line per query."""
    begin = f"{found.taken:,}" if found.epochs else "none"
    when = f" in epoch {', '.join(map(str, found.epochs))}" if found.epochs else ""
    title = f"{begin} of {count(found.letters, 'dead letter')} of {stream} became input{when}"
    return "\n".join([title, *map(_answer, found.answers)])


def _answer(answer: Answer) -> str:
    refused = [f"{number:,} {reason}" for reason, number in answer.refused.items() if number]
    told = f"  {answer.query} takes {answer.taken:,}"
    return f"{told}, refuses {', '.join(refused)}" if refused else told


def _chosen(info: StreamInfo, statement: Replay, catalog: Catalog) -> Choose:
    """Which dead letters a statement means."""
    if statement.where is None:
        return lambda rows: np.ones(rows.num_rows, dtype=np.bool_)
    schema = letters_schema(info.schema)
    apart = schema.names[len(info.schema)]
    letters = StreamInfo(info.name, schema, apart, TimeDomain.TIMESTAMP)
    known = Catalog({info.name.lower(): letters}, catalog.functions)
    position = statement.position
    table = NamedTable(statement.stream, None, None)
    query = SelectQuery(
        (StarItem(None, position),), False, (table,), statement.where, (), None, None, position
    )
    return partial(_holds, _conditions(bind(query, known), position))


def _conditions(plan: Plan, position: Position) -> tuple[Filter, ...]:
    """The conditions of a query over dead letters alone.

    Raises:
        LanguageError: it reads something else.
    """
    match plan:
        case Source():
            return ()
        case Filter(input=below):
            return (*_conditions(below, position), plan)
        case Project(input=below):
            return _conditions(below, position)
        case _:
            raise LanguageError(
                "the condition of REPLAY reads more than the dead letter",
                position=position,
                hint="compare its columns with constants",
            )


def _holds(conditions: tuple[Filter, ...], rows: pa.Table) -> BoolArray:
    """Of which dead letters all conditions hold; not of those for which one fails."""
    found = np.ones(rows.num_rows, dtype=np.bool_)
    for condition in conditions:
        names = list(condition.input.schema.names)
        batches = rows.select(names).combine_chunks().to_batches() if rows.num_rows else []
        masks = [predicate_mask(evaluate_condition(condition.predicate, batch)) for batch in batches]
        found &= np.concatenate([np.zeros(0, dtype=np.bool_), *masks])
    return found
