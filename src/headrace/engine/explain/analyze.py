"""EXPLAIN ANALYZE: the physical plan of a query with what its operators have counted."""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.letters import stream_of_letters
from headrace.algebra.nodes import Leaf, Plan
from headrace.algebra.properties import sources_of
from headrace.engine.catalog.definitions import RESULT, Definitions
from headrace.engine.run.execution import Execution, Settings
from headrace.engine.shown.status import Status, instant_text, lag_text
from headrace.errors import LanguageError, Position
from headrace.lowering.explain import explain_graph
from headrace.runtime.driver.facts.status import OperatorStatus, QueryStatus
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.runtime.tasks.runner import Runner
from headrace.runtime.writing.texts import count
from headrace.time import INFINITY, TimeDomain


def analyzed(status: Status, name: str) -> str:
    """How a query runs: its operators, each with its rows, its state, its seconds and their share.

    Args:
        status: of the run.
        name: the query's.

    Raises:
        UserError: no query of that name runs.
    """
    query = status.query(name)
    if query.failed is not None:
        return f"{query.name} failed: {query.failed}\n  hint: {query.advice}"
    numbers = status.graph.below(query.chain[0].node)
    operators = [status.operators[number] for number in sorted(numbers)]
    everything = sum(operator.seconds for operator in operators)
    notes = {operator.number: _note(status, operator, everything) for operator in operators}
    parts = [explain_graph(status.graph, query.id, notes, lambda _: query.name)]
    parts.append(_answer(query, status.held_by(query)))
    if query.memory is not None:
        parts.append(query.memory.text)
    if query.exchanged is not None:
        parts.append(_exchanged(query.exchanged, query.domain))
    return "\n".join(parts)


def check_bounded(defined: Definitions, plan: Plan, position: Position) -> None:
    """Refuse to run a query to the end of a stream that has none.

    Args:
        defined: the streams.
        plan: the query's plan.
        position: where it is asked for.

    Raises:
        LanguageError: the query reads a stream that never ends.
    """
    known = defined.streams
    for source in sources_of(plan):
        name = stream_of_letters(source.name) or source.name
        if isinstance(known[name], LiveStream):
            raise LanguageError(
                f"EXPLAIN ANALYZE runs its query to the end, and the stream {name} never ends",
                position=position,
                hint="define the query and start it, and then write EXPLAIN ANALYZE with its name",
            )


def run_alone(runner: Runner, settings: Settings, defined: Definitions) -> str:
    """Run a query to the end of its inputs, write its answer nowhere, and say how it ran.

    Args:
        runner: where it runs.
        settings: of the database; nothing is kept in its store.
        defined: all streams, and the query, which is called `RESULT`.

    Raises:
        UserError: an input is damaged.
    """
    settings = Settings(None, replace(settings.run, keep_results=False), None)
    execution = Execution(runner, settings, defined, adapt=False)
    try:
        execution.complete(None)
        return analyzed(execution.status, RESULT)
    finally:
        execution.close()


def _note(status: Status, operator: OperatorStatus, everything: float) -> str:
    """What an operator has counted, on one line.

    Args:
        status: of the run.
        operator: the operator.
        everything: the seconds of all operators of the query.
    """
    node = status.graph.nodes[operator.number]
    if node.level == 0 and node not in status.graph.prefix:
        return "carried out where its rows are added up"
    if isinstance(node.plan, Leaf):
        return count(operator.rows_out, "row")
    parts = [f"{count(operator.rows_in, 'row')} in, {operator.rows_out:,} out"]
    if operator.state_rows:
        waiting = f" ({operator.waiting_rows:,} waiting)" if operator.waiting_rows else ""
        parts.append(f"state {count(operator.state_rows, 'row')}{waiting}, {operator.state_bytes:,} B")
    share = operator.seconds / everything if everything else 0.0
    parts.append(f"{operator.seconds:.3f} s, {100 * share:.0f} %")
    return "; ".join(parts)


def _exchanged(exchange: PlanExchange, domain: TimeDomain) -> str:
    """What was exchanged last, and why."""
    orders = "; ".join(map(" -> ".join, zip(exchange.before, exchange.after, strict=True)))
    why = "as ALTER QUERY asked" if exchange.asked else "by itself"
    return (
        f"joins in another order since epoch {exchange.epoch:,}, {why}: {orders}; {exchange.gain:,.1f} times "
        f"fewer rows were expected, and the new plan answers from {instant_text(exchange.at, domain)} on"
    )


def _answer(query: QueryStatus, held_by: str) -> str:
    """How far the answer is, on one line."""
    changes = count(query.changes, "element")
    if query.heartbeat == INFINITY:
        return f"{changes}, all final"
    heartbeat = instant_text(query.heartbeat, query.domain)
    final = f"final below {heartbeat}" if heartbeat else "nothing final yet"
    lag = lag_text(query)
    behind = f", {lag} behind the newest row read" if lag else ""
    return f"{changes}, {final}{behind}; held back by {held_by}"
