"""Texts to plans, quickly where a text differs from an earlier one in its constants alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.loss import Loss
from headrace.engine.planning.forms import ParameterForm
from headrace.errors import LanguageError
from headrace.expressions.parameters import Parameter
from headrace.language.binding.binder import derive
from headrace.language.catalog import Catalog
from headrace.language.notes import Note, notes_of
from headrace.language.parameters import open_constants, put_parameters
from headrace.language.parsing.parser import parse, parse_one
from headrace.language.parsing.pieces import Piece, pieces_of
from headrace.language.references import streams_named
from headrace.language.statements.statements import CreateQuery, Select, Statement
from headrace.language.syntax import QuerySyntax
from headrace.lowering.identity import digest_of
from headrace.optimizer import optimize, optimize_by
from headrace.optimizer.decisions import Decisions
from headrace.optimizer.estimates.by_value import by_value
from headrace.optimizer.estimates.estimated import estimated
from headrace.optimizer.estimates.remembering import limited

_BYTE_ORDER_MARK: Final = "\ufeff"
"""What some editors begin a text with."""
_DIGITS: Final = 12
"""So many digits of the digest of a plan tell it from others."""
MAX_FORMS: Final = 1_000
"""Of so many different texts the plan is kept, for others like them."""


@dataclass(frozen=True)
class Compiled:
    """What a query means.

    Attributes:
        plan: as it was written, bound to the streams' columns.
        optimized: the same, optimized.
        streams: the streams that its text names, in lower case.
        notes: what it does that its author may not expect.
        is_stream: whether it yields a stream of events, and not a content that changes.
        decisions: what was decided about how it runs; None where there was nothing to decide.
    """

    plan: Plan
    optimized: Plan
    streams: frozenset[str]
    notes: tuple[Note, ...]
    is_stream: bool
    decisions: Decisions | None = None

    def decided(self, decisions: Decisions | None) -> Compiled:
        """The same, with something else decided."""
        if decisions == self.decisions or decisions is None:
            return self
        return replace(self, optimized=optimize_by(self.plan, decisions), decisions=decisions)


Decide = Callable[[Plan], Decisions | None]
"""What is decided about an optimized plan; None where there is nothing to decide."""


ShapeKey = tuple[str, tuple[str, ...]]
"""A shape, and the texts of those constants on which it depends what a text of that shape is."""


class KnownShapes:
    """What is known by shape and by the constants that matter.

    For each shape there are the places of the constants that may be any.
    """

    def __init__(self) -> None:
        self._open: dict[str, frozenset[int]] = {}

    def key(self, piece: Piece) -> ShapeKey | None:
        """What a text's value is known by; None where nothing is known of its shape."""
        places = self._open.get(piece.shape)
        return None if places is None else _key(piece, places)

    def learn(self, piece: Piece, places: frozenset[int]) -> ShapeKey | None:
        """Note that constants of a text may be any; what its value is known by, if that can be said.

        Some constants may be any only beside certain others. The most that were ever found count.
        """
        known = self._open.get(piece.shape, frozenset())
        if not known <= places:
            return None
        self._open[piece.shape] = places
        return _key(piece, places)


def _key(piece: Piece, places: frozenset[int]) -> ShapeKey:
    return piece.shape, tuple(part.text for place, part in enumerate(piece.constants) if place not in places)


class Compiler:
    """Plans for texts.

    The first text of a shape is parsed, bound and optimized with parameters in the place of constants. If
    nobody has looked at the value of a parameter on the way, the plan of a text with another constant in that
    place is the same, with that constant in it (`headrace.expressions.parameters`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalog, self._with_rows = Catalog(), frozenset[str]()
        self._parsed, self._bound = KnownShapes(), KnownShapes()
        self._parsing: set[ShapeKey] = set()
        self._forms: dict[ShapeKey, ParameterForm] = {}

    def statements(self, text: str) -> list[Statement | Piece]:
        """The statements of a text; those whose like have been parsed before are not parsed.

        Raises:
            LanguageError: the text is malformed.
        """
        text = text.removeprefix(_BYTE_ORDER_MARK)
        pieces = pieces_of(text)
        if pieces is None:
            return list(parse(text))
        found: list[Statement | Piece] = []
        try:
            for piece in pieces:
                if isinstance(piece, Piece):
                    found.append(self._parsed_once(piece))
                else:
                    found += parse(piece.text, piece.position)
        except LanguageError:
            # Where all of the text is read, an error further on may come first.
            parse(text)
            raise
        return found

    def compiled(
        self,
        asked: QuerySyntax | Piece,
        catalog: Catalog,
        decide: Decide = lambda _: None,
        loss: Loss | None = None,
        with_rows: frozenset[str] = frozenset(),
    ) -> Compiled:
        """What a query means.

        Args:
            asked: its syntax tree, or its text, which can be parsed.
            catalog: the streams it may use.
            decide: asked once for texts that differ in constants alone, so that their queries can share their
                operators.
            loss: what is borne of rows that are left out, for a query that is estimated then.
            with_rows: the streams that a run has had rows of; where there are others, what was decided before
                does not hold for new queries.

        Raises:
            LanguageError: an unknown name, a wrong type, or a window where none is allowed.
        """
        if loss is not None:
            return _estimating(_query_of(asked) if isinstance(asked, Piece) else asked, catalog, loss)
        if not isinstance(asked, Piece):
            found = _compiled(asked, catalog)
            return found.decided(decide(found.optimized))
        with self._lock:
            known = self._catalog, self._with_rows
            if known != (catalog, with_rows) or len(self._forms) >= MAX_FORMS:
                (self._catalog, self._with_rows), self._bound = (catalog, with_rows), KnownShapes()
                self._forms.clear()
            key = self._bound.key(asked)
            form = None if key is None else self._forms.get(key)
            if form is None:
                form = self._form(asked, catalog, decide)
            made: Compiled = form.filled([constant.value for constant in asked.constants])
            if made.notes:
                # Those are at the places of the text that was parsed.
                made = replace(made, notes=notes_of(_query_of(asked), catalog, made.optimized))
            return made

    def _parsed_once(self, piece: Piece) -> Piece:
        """The piece with its syntax tree, unless one of its kind has been parsed before."""
        with self._lock:
            if self._parsed.key(piece) in self._parsing:
                return piece
            if len(self._parsing) >= MAX_FORMS:
                self._parsed = KnownShapes()
                self._parsing.clear()
            query = _query_of(piece)
            nodes = open_constants(query)
            places = (place for place, part in enumerate(piece.constants) if part.offset in nodes)
            key = self._parsed.learn(piece, frozenset(places))
            if key is not None:
                self._parsing.add(key)
            return replace(piece, query=query)

    def _form(self, piece: Piece, catalog: Catalog, decide: Decide) -> ParameterForm:
        query = piece.query or _query_of(piece)
        nodes = open_constants(query)
        seen: set[int] = set()
        parameters = {
            part.offset: Parameter(place, part.value, seen)
            for place, part in enumerate(piece.constants)
            if part.offset in nodes
        }
        put_parameters(nodes, parameters)
        found = _compiled(query, catalog)
        form = ParameterForm(found, parameters.values(), len(piece.constants))
        plain: Compiled = form.filled([part.value for part in piece.constants])
        decided = found.decided(decide(plain.optimized))
        if decided is not found:
            form = ParameterForm(decided, parameters.values(), len(piece.constants))
        if any(map(catalog.is_of_query, found.streams)):
            # Another query may have that name when such a text is read next.
            return form
        key = self._bound.learn(piece, frozenset(form.parameters - seen))
        if key is not None:
            self._forms[key] = form
        return form


def _compiled(query: QuerySyntax, catalog: Catalog) -> Compiled:
    meant = derive("", query, catalog)
    optimized = optimize(meant.plan)
    notes = notes_of(query, catalog, optimized)
    return Compiled(meant.plan, optimized, streams_named(query), notes, meant.is_stream)


def _estimating(query: QuerySyntax, catalog: Catalog, loss: Loss) -> Compiled:
    found = _compiled(query, catalog)
    if loss.memory is not None:
        plan = limited(found.optimized, loss, digest_of(found.optimized, {})[:_DIGITS])
        return replace(found, plan=plan, optimized=plan)
    if loss.values is not None:
        plan = by_value(found.optimized, loss)
        return replace(found, plan=plan, optimized=plan)
    plan = estimated(found.plan, found.optimized, loss)
    return replace(found, plan=plan, optimized=optimize(plan))


def _query_of(piece: Piece) -> QuerySyntax:
    """The query that a text is.

    Raises:
        LanguageError: it is malformed.
    """
    statement = parse_one(piece.text, piece.position)
    assert isinstance(statement, Select | CreateQuery)
    return statement.query
