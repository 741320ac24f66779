"""Statements, carried out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import assert_never

from headrace.engine.analysis import analyzed, check_bounded, run_alone
from headrace.engine.changing import declared_changes
from headrace.engine.core import Core
from headrace.engine.costs import costs
from headrace.engine.definitions import RESULT
from headrace.engine.display import PlanText
from headrace.engine.inputs import Input, declared
from headrace.engine.policy import Policy
from headrace.engine.query import Query, explain_plan, with_notes
from headrace.engine.refreshing import refreshed_text
from headrace.engine.relations import Table, declared_relation, with_values
from headrace.engine.reoptimize import reoptimized
from headrace.engine.replay import replayed
from headrace.engine.sharing import shared_by, users_of
from headrace.engine.show import show
from headrace.engine.silence import place_of
from headrace.errors import LanguageError
from headrace.language.binding.binder import derive
from headrace.language.parsing.pieces import Piece
from headrace.language.statements import (
    AlterStream,
    CreateQuery,
    CreateRelation,
    CreateSkew,
    CreateStream,
    CreateStreamAs,
    DropQuery,
    DropRelation,
    DropStream,
    Explain,
    ExplainAnalyze,
    ExplainCost,
    ExplainShared,
    RefreshRelation,
    Reoptimize,
    Replay,
    Select,
    SetDialect,
    Show,
    Statement,
    TimeClauses,
    Why,
)
from headrace.language.syntax import Name
from headrace.optimizer.decisions import Decisions


def carry_out(core: Core, statement: Statement | Piece, base: Path, policy: Policy) -> Query | str | None:
    """Carry out a statement.

    Args:
        core: the database.
        statement: what to do.
        base: the folder that relative paths start from.
        policy: what the statement may reach.

    Returns:
        A query for CREATE QUERY and SELECT, the text of EXPLAIN, SHOW and WHY, None for others.

    Raises:
        PolicyError: the statement asks for more than the policy allows.
        UserError: the statement is wrong, or an input cannot be read.
    """
    match statement:
        case CreateStream() | CreateRelation() | CreateStreamAs() | SetDialect():
            _define(core, statement, base, policy)
        case AlterStream() | CreateSkew():
            _retime(core, statement, policy)
        case Reoptimize(query=name, position=position):
            policy.check_change("ALTER QUERY", position)
            return PlanText(reoptimized(core, name))
        case RefreshRelation(relation=name, position=position):
            policy.check_change("REFRESH RELATION", position)
            return PlanText(refreshed_text(core, name))
        case Replay(position=position):
            policy.check_change("REPLAY", position)
            return PlanText(replayed(core, statement, policy))
        case CreateQuery(name=name):
            return register(core, name.text, statement, policy)
        case Select(query=query):
            return core.register(None, query, None, policy)
        case Piece():
            return core.register(statement.name, statement, statement.position, policy)
        case Explain() | ExplainAnalyze() | ExplainCost() | ExplainShared() | Show() | Why():
            return _text(core, statement, policy)
        case DropStream() | DropRelation() | DropQuery():
            _drop(core, statement, policy)
        case _:
            assert_never(statement)
    return None


def register(core: Core, name: str, made: CreateQuery, policy: Policy) -> Query:
    """Take in the query of CREATE QUERY.

    Args:
        core: the database.
        name: that of the query, whatever the statement says.
        made: the statement.
        policy: what it may reach.

    Raises:
        UserError: as `Core.register` does.
    """
    return core.register(
        name, made.query, made.position, policy,
        warm=made.warm, heartbeats=made.heartbeats, consistency=made.consistency,
    )  # fmt: skip


def _define(
    core: Core,
    statement: CreateStream | CreateRelation | CreateStreamAs | SetDialect,
    base: Path,
    policy: Policy,
) -> None:
    match statement:
        case CreateStream(time=time):
            statement = replace(statement, time=_listed(core, time, policy))
            stream = declared(statement, base, policy, core.read_stream)
            with core.lock:
                core.change(core.definitions.with_input(stream, statement.position))
        case CreateRelation():
            table = _relation(core, statement, base, policy)
            with core.lock:
                core.change(core.definitions.with_relation(table, statement.position))
        case CreateStreamAs(name=name, query=query, position=position):
            with core.lock:
                entry = derive(name.text, query, policy.visible(core.definitions.catalog))
                core.change(core.definitions.with_derived(entry, query, position))
        case SetDialect(defaults=defaults, position=position):
            policy.check_change("SET dialect", position)
            with core.lock:
                core.definitions = core.definitions.with_defaults(defaults)
        case _:
            assert_never(statement)


def _relation(core: Core, statement: CreateRelation, base: Path, policy: Policy) -> Input | Table:
    changes = statement.changes
    if changes is None:
        return declared_relation(statement, base, policy)
    stream = replace(changes.stream, time=_listed(core, changes.stream.time, policy))
    return declared_changes(statement, replace(changes, stream=stream), base, policy, core.read_stream)


def _text(
    core: Core, statement: Explain | ExplainAnalyze | ExplainCost | ExplainShared | Show | Why, policy: Policy
) -> str:
    """What a statement asks of streams, queries and plans, as text."""
    catalog = policy.visible(core.definitions.catalog)
    match statement:
        case Explain(query=query, stage=stage):
            found = core.compiled(query, policy)
            notes = (*found.notes, *core.silence(found.plan, place_of(query)))
            return PlanText(
                with_notes(explain_plan(found.plan, found.decisions or Decisions(), stage), notes)
            )
        case ExplainCost(query=query, position=position):
            found = core.compiled(query, policy)
            epoch_rows = core.settings.run.epoch_rows
            return PlanText(costs(core.definitions, found.optimized, position, epoch_rows))
        case ExplainShared():
            return _shared(core, statement, policy)
        case ExplainAnalyze():
            return _analyzed(core, statement, policy)
        case Why(query=name, position=position):
            policy.check_change("WHY", position)
            return PlanText(str(core.why(core.definitions.query_named(name.text, name.position).name)))
        case Show(what=what):
            return show(what, core.definitions, catalog.functions, core.known_status)
        case _:
            assert_never(statement)


def _shared(core: Core, statement: ExplainShared, policy: Policy) -> str:
    """The operators that queries have in common: of the run that goes on, or if all started together."""
    policy.check_change("EXPLAIN SHARED", statement.position)
    if statement.query is None and core.running:
        return PlanText(users_of(core.status.graph))
    plans = dict(core.definitions.plans)
    if statement.query is not None:
        plans[RESULT] = core.compiled(statement.query, policy).optimized
    if not plans:
        raise LanguageError(
            "there is no query", position=statement.position, hint="define one with CREATE QUERY first"
        )
    return PlanText(shared_by(core.definitions, plans))


def _analyzed(core: Core, statement: ExplainAnalyze, policy: Policy) -> str:
    """The plan of a query with the numbers of the run that answers it, or of a run of its own."""
    position = statement.position
    match statement.subject:
        case Name() as name:
            policy.check_change("EXPLAIN ANALYZE of a query by its name", position)
            known = core.definitions.query_named(name.text, name.position)
            return PlanText(analyzed(core.status, known.name))
        case query:
            if core.running:
                raise LanguageError(
                    "EXPLAIN ANALYZE runs its query alone, and a run is going on",
                    position=position,
                    hint="define the query, and then write EXPLAIN ANALYZE with its name",
                )
            found = core.compiled(query, policy)
            alone = core.definitions.only(Query(core, RESULT, found.plan), found.optimized)
            check_bounded(alone, found.plan, position)
            return PlanText(run_alone(core.runner(), core.settings, alone))


def _retime(core: Core, statement: AlterStream | CreateSkew, policy: Policy) -> None:
    match statement:
        case AlterStream(position=position, time=time):
            policy.check_change("ALTER STREAM", position)
            with core.lock:
                listed = replace(statement, time=_listed(core, time, policy))
                core.change(core.definitions.with_time(listed))
        case CreateSkew(position=position):
            policy.check_change("CREATE SKEW", position)
            with core.lock:
                core.change(core.definitions.with_skew(statement))
        case _:
            assert_never(statement)


def _listed(core: Core, clauses: TimeClauses, policy: Policy) -> TimeClauses:
    """The clauses of a stream with values in the place of the relation that has them."""
    catalog = policy.visible(core.definitions.catalog)
    return with_values(clauses, catalog, core.definitions.relations)


def _drop(core: Core, statement: DropStream | DropRelation | DropQuery, policy: Policy) -> None:
    name, position = statement.name, statement.position
    match statement:
        case DropStream():
            policy.check_change("DROP STREAM", position)
            core.drop_stream(name.text, name.position)
        case DropRelation():
            policy.check_change("DROP RELATION", position)
            core.drop_relation(name.text, name.position)
        case DropQuery():
            policy.check_change("DROP QUERY", position)
            core.drop_query(name.text, name.position)
        case _:
            assert_never(statement)
