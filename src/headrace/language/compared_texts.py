"""Columns of texts that a query compares with numbers: rows in which the text is none cannot take part."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headrace.dataclass_parts import parts_of
from headrace.language.catalog import Catalog, columns_of
from headrace.language.dialect import Nested
from headrace.language.long_lists import literals_of, written_list
from headrace.language.references import tables_named
from headrace.language.syntax import QuerySyntax, ScalarItem
from headrace.schema import STRING

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between)


def compared_texts(query: QuerySyntax, catalog: Catalog) -> Iterator[tuple[exp.Expression, str, str]]:
    """The comparisons of columns that are STRINGs with numbers.

    Args:
        query: its syntax tree.
        catalog: the streams it uses.

    Returns:
        The first comparison of each column, the column's name, and the number as it is written.
    """
    texts, found = _texts(query, catalog), set[str]()
    if not texts:
        return
    for expression in _expressions(query):
        for node in expression.find_all(*_COMPARISONS):
            for name, number in _sides(node):
                if name.lower() in texts and name.lower() not in found:
                    found.add(name.lower())
                    yield node, name, number


def _texts(query: QuerySyntax, catalog: Catalog) -> frozenset[str]:
    """The columns, in lower case, that are STRINGs in all tables that have them, and no aliases."""
    types: dict[str, set[bool]] = {}
    for table in tables_named(query):
        for column in columns_of(catalog.find(table.name.text)):
            types.setdefault(column.name.lower(), set()).add(column.type == STRING)
    aliases = {
        item.alias.text.lower()
        for item in _parts(query)
        if isinstance(item, ScalarItem) and item.alias is not None
    }
    return frozenset(name for name, are_texts in types.items() if are_texts == {True}) - aliases


def _sides(node: exp.Expression) -> Iterator[tuple[str, str]]:
    """The columns and numbers that a comparison has on its sides."""
    match node:
        case exp.In():
            one, others = node.this, node.args.get("expressions") or []
        case exp.Between():
            one, others = node.this, [node.args["low"], node.args["high"]]
        case _:
            one, others = node.this, [node.expression]
            if not isinstance(one, exp.Column):
                one, others = node.expression, [node.this]
    written = written_list(node)
    if written is None:
        literals = (other for other in others if isinstance(other, exp.Literal) and not other.is_string)
        numbers = (str(literal.this) for literal in literals)
    else:
        numbers = (text for text, _ in literals_of(written) if text[0].isdecimal())
    number = next(numbers, None)
    if isinstance(one, exp.Column) and number is not None:
        yield str(one.name), number


def _expressions(part: object) -> Iterator[exp.Expression]:
    """The scalar expressions of a query, those of queries within it included."""
    return (one for one in _parts(part) if isinstance(one, exp.Expression))


def _parts(part: object) -> Iterator[object]:
    """A part of a query and all within it, those of queries in its expressions included."""
    yield part
    if isinstance(part, exp.Expression):
        for node in part.find_all(Nested):
            yield from _parts(node.args["query"])
    for one in parts_of(part):
        yield from _parts(one)
