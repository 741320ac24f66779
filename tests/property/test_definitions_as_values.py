"""Definitions are values: a query has one record, and a change leaves earlier values alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.catalog.definitions import Definitions
from headrace.errors import LanguageError
from headrace.language.statements.catalog import CatalogKind
from headrace.lowering.query_id import first_name
from how_many import examples
from inside import core_of

NAMES: Final = ("a", "b", "C")
TEXTS: Final = (
    "SELECT k FROM s",
    "SELECT COUNT(*) AS n FROM s [RANGE 5]",
    "SELECT k FROM s WHERE v > 3",
)
STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "drop", "rename", "pause", "resume", "replace"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(TEXTS),
    ),
    max_size=16,
)


@dataclass(frozen=True)
class Known:
    """A query as it is expected to be defined."""

    name: str
    text: str
    paused: bool = False


Model = dict[str, Known]
"""The queries by their names in lower case, in the order in which they came."""


@examples(40, 400)
@given(STEPS)
def test_definitions_follow_a_model(steps: list[tuple[str, str, str, str]]) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        model: Model = {}
        identities: dict[str, str] = {}
        ever: set[str] = set()
        values: list[tuple[Definitions, tuple[tuple[str, bool], ...]]] = []
        for what, name, other, text in steps:
            found, said = after(model, what, name, other, text)
            assert is_carried_out(db, said) == (found is not None), said
            model = model if found is None else found
            moved = name.lower() if what == "rename" and found is not None else None
            defined = core_of(db).definitions
            now = {query.name.lower(): query.id for query in defined.all_queries}
            # An identity stays with its query, and comes once.
            assert now.keys() == model.keys()
            for key, identity in now.items():
                was = identities.get(moved if moved is not None and key == other.lower() else key)
                assert identity == was or identity not in ever
            ever |= {*now.values()}
            identities = now
            check(defined, model)
            values.append((defined, facts(defined)))
        for defined, before in values:
            assert facts(defined) == before


def after(model: Model, what: str, name: str, other: str, text: str) -> tuple[Model | None, str]:
    """The queries after a change, None where it is refused; and its statement."""
    key, to, known = name.lower(), other.lower(), model.get(name.lower())
    match what:
        case "add":
            made = {**model, key: Known(name, text)} if known is None else None
            return made, f"CREATE QUERY {name} AS {text}"
        case "drop":
            return without(model, key), f"DROP QUERY {name}"
        case "rename":
            allowed = known is not None and (key == to or to not in model)
            return renamed(model, key, other) if allowed else None, f"ALTER QUERY {name} RENAME TO {other}"
        case "pause":
            allowed = known is not None and not known.paused
            return marked(model, key, paused=True) if allowed else None, f"ALTER QUERY {name} PAUSE"
        case "resume":
            allowed = known is not None and known.paused
            return marked(model, key, paused=False) if allowed else None, f"ALTER QUERY {name} RESUME"
        case _:
            if known is None:
                return {**model, key: Known(name, text)}, f"CREATE OR REPLACE QUERY {name} AS {text}"
            replaced = {**model, key: replace(known, text=text)}
            return None if known.paused else replaced, f"CREATE OR REPLACE QUERY {name} AS {text}"


def renamed(model: Model, key: str, name: str) -> Model:
    there = {name.lower() if one == key else one: found for one, found in model.items()}
    return {**there, name.lower(): replace(model[key], name=name)}


def is_carried_out(db: hr.Database, text: str) -> bool:
    """Carry out a statement; whether it was not refused."""
    try:
        db.execute(text)
    except LanguageError:
        return False
    return True


def without(model: Model, key: str) -> Model | None:
    return {one: found for one, found in model.items() if one != key} if key in model else None


def marked(model: Model, key: str, *, paused: bool) -> Model:
    return {**model, key: replace(model[key], paused=paused)}


def check(defined: Definitions, model: Model) -> None:
    """See that all views of the records say the same."""
    for key, known in model.items():
        query = defined.find_query(key)
        assert query is not None
        assert (query.name, defined.is_paused(query)) == (known.name, known.paused)
        record = defined.record_of(CatalogKind.QUERY, known.name)
        assert record is not None
        assert (record.id, record.paused, record.name) == (query.id, known.paused, known.name)
        assert known.text in (record.text or "")
        assert (query.id in defined.plans) == (query.id in defined.answered) == (not known.paused)
        assert (query.id in defined.paused) == known.paused
        assert (query.id in defined.names) == (first_name(query.id) != known.name)
    assert len(defined.queries) == len(model)


def facts(defined: Definitions) -> tuple[tuple[str, bool], ...]:
    """What a value says of its queries, but for their names, which are the queries' own."""
    return tuple((identity, one.paused) for identity, one in defined.queries.items())
