"""The sqlglot dialect: Spark SQL's tokens and scalar expressions, with the parser's leniency taken out.

The clauses of statements and queries are read by `queries` and `ddl`; sqlglot reads what is between
them, a scalar expression at a time. Functions stay calls by name, since the function table is ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from headrace.errors import Position
from headrace.language.long_lists import LIST_TOKEN, list_node
from headrace.language.text import SourceText
from headrace.language.unsupported import refuse_after_call
from headrace.time import CALENDAR, unit_of


def _only(table: dict[TokenType, Any], *kinds: str) -> dict[TokenType, Any]:
    """The entries of one of sqlglot's tables for these kinds of tokens."""
    return {TokenType[kind]: table[TokenType[kind]] for kind in kinds}


NestedQueries = Callable[[int], tuple[object, int] | None]
"""Reads the query that starts at a token: its syntax tree and the token after it, or None if none starts."""

_NOTHING: Final[dict[Any, Any]] = {}
_KEYWORDS: Final = {key: kind for key, kind in Spark.Tokenizer.KEYWORDS.items() if key != "/*+"}
_ESCAPES: Final = ["\\", "'", '"']
_PRINTED: Final = {
    "≤": TokenType.LTE,
    "≥": TokenType.GTE,
    "≠": TokenType.NEQ,
    "∧": TokenType.AND,
    "∨": TokenType.OR,
    "¬": TokenType.NOT,
    "∈": TokenType.IN,
    "×": TokenType.STAR,
}
"""Operators as the literature prints them, beside their spelling in SQL."""

_WORDS = """
    ALL AND AS BETWEEN BY CASE CREATE CROSS DISTINCT ELSE END EXCEPT FROM FULL GROUP HAVING IN INNER INTERSECT
    IS JOIN LEFT LIKE LIMIT MINUS NATURAL NOT NULL ON OR ORDER RIGHT SELECT THEN UNION USING WHEN WHERE WINDOW
    WITH
"""

RESERVED: Final = frozenset(_WORDS.split())
"""Words that are names only in backticks."""

_SUFFIXES: Final = {"L": "BIGINT", "D": "DOUBLE", "BD": "DECIMAL"}
_LITERALS: Final = (TokenType.STRING, TokenType.NUMBER)
_ENDS_LITERAL: Final = (TokenType.COMMA, TokenType.R_PAREN)
_ENDS_PARTITION: Final = (TokenType.R_PAREN, TokenType.ORDER_BY)
_CALLED: Final = SparkParser.FUNC_TOKENS | {TokenType.SESSION}
"""Words that may be a function's name; SESSION is, for the sake of a hint."""
_WITHIN_USAGE: Final = ", as in COUNT(*) WITHIN 1 PERCENT"
_BOUNDS_USAGE: Final = ", as in RANGE MIN 5 MINUTES, MAX 1 HOUR"
_BEHIND: Final = ("Expected END after CASE",)
"""What sqlglot says of the token before the one that is wrong."""
_SPECIAL: Final[dict[str, Callable[[Any], Any]]] = {
    "CAST": lambda parser: parser._parse_cast(strict=True),
    "TRY_CAST": lambda parser: parser._parse_cast(strict=False, safe=True),
    "SAFE_CAST": lambda parser: parser._parse_cast(strict=False, safe=True),
    "EXTRACT": lambda parser: parser._parse_extract(),
    "TRIM": lambda parser: parser.trim_of(),
    "SUBSTRING": lambda parser: parser.with_words("SUBSTRING"),
    "SUBSTR": lambda parser: parser.with_words("SUBSTRING"),
    "POSITION": lambda parser: parser.with_words("LOCATE"),
    "FROM_JSON": lambda parser: parser.from_json(),
}
"""Functions whose arguments have a syntax of their own."""
_NESTED_TYPE: Final = re.compile(r"\s*(ARRAY|MAP|STRUCT)\s*<", re.IGNORECASE)
_CASE: Final[dict[str, Callable[[Any], Any]]] = {"CASE": lambda parser: parser._parse_case()}
_RANGES: Final = _only(SparkParser.RANGE_PARSERS, "BETWEEN", "ILIKE", "IN", "IS", "LIKE", "RLIKE")
_UNARY: Final = _only(SparkParser.UNARY_PARSERS, "DASH", "NOT", "PLUS")
_POSTFIX: Final = _only(SparkParser.COLUMN_OPERATORS, "DOT", "DCOLON")
_PRIMARY: Final[dict[TokenType, Callable[[Any, Token], Any]]] = {
    **_only(SparkParser.PRIMARY_PARSERS, "STRING", "NUMBER", "NULL", "TRUE", "FALSE"),
    TokenType.STAR: lambda parser, _: parser.expression(exp.Star()),
    TokenType.HEX_STRING: lambda parser, token: parser.hexadecimal(token),
    TokenType.RAW_STRING: lambda parser, token: parser.raw_text(token),
}
_TYPED: Final[dict[Any, Callable[[Any, Any, Any], Any]]] = {
    exp.DType.DATE: lambda parser, text, to: parser.typed_literal(text, to),
    exp.DType.TIMESTAMPTZ: lambda parser, text, to: parser.typed_literal(text, to),
}


class Nested(exp.Expression):  # type: ignore[misc]
    """A query inside an expression; `query` is our syntax tree of it."""

    arg_types: Final = {"query": True}


class WithinPercent(exp.Expression, exp.Func):  # type: ignore[misc]
    """An aggregate and what follows it: `WITHIN 1 PERCENT`, and which bound is meant if it is one."""

    arg_types: Final = {"this": True, "percent": True, "side": False}


class FrameBounds(exp.Expression):  # type: ignore[misc]
    """The bounds of a frame of OVER, its smallest and its largest length."""

    arg_types: Final = {"this": True, "expression": True}


class ScalarError(ParseError):  # type: ignore[misc]  # sqlglot is untyped here
    """A parse error that knows the token at which it happened, None for the end, and its index."""

    def __init__(self, message: str, token: Token | None, index: int) -> None:
        super().__init__(message)
        self.message = message
        self.token = token
        self.index = index


class Headrace(Spark):  # type: ignore[misc]
    """Spark SQL, cut down to what the binder knows."""

    IDENTIFIERS_CAN_START_WITH_DIGIT = False

    class Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
        """Spark's tokens, without commands that swallow the rest of a text, and without hints."""

        COMMANDS = frozenset[TokenType]()
        KEYWORDS = _KEYWORDS
        SINGLE_TOKENS: Final = {**Spark.Tokenizer.SINGLE_TOKENS, **_PRINTED}
        NUMERIC_LITERALS = _SUFFIXES
        STRING_ESCAPES = _ESCAPES

    class Parser(SparkParser):  # type: ignore[misc]
        """Reads one scalar expression at a given token."""

        STRICT_CAST = True
        FUNCTIONS = _NOTHING
        FUNCTION_PARSERS = _SPECIAL
        NO_PAREN_FUNCTIONS = _NOTHING
        NO_PAREN_FUNCTION_PARSERS = _CASE
        PLACEHOLDER_PARSERS = _NOTHING
        LAMBDAS = _NOTHING
        BITWISE = _NOTHING
        FUNC_TOKENS = _CALLED
        BRACKETS = frozenset([TokenType.L_BRACKET])
        RANGE_PARSERS = _RANGES
        UNARY_PARSERS = _UNARY
        COLUMN_OPERATORS = _POSTFIX
        PRIMARY_PARSERS = _PRIMARY
        TYPE_LITERAL_PARSERS = _TYPED

        def scalar_at(
            self, tokens: list[Token], index: int, source: SourceText, nested: NestedQueries
        ) -> tuple[object, int]:
            """The scalar expression that starts at a token, or None, and the index of the token after it.

            Raises:
                ParseError: the expression is malformed.
                LanguageError: it uses what is not built yet.
            """
            self._start(tokens, index, source, nested)
            return self._parse_disjunction(), self._index

        def window_at(
            self, tokens: list[Token], index: int, source: SourceText, nested: NestedQueries
        ) -> tuple[object, int]:
            """The `AS (PARTITION BY ...)` that starts at a token, as `scalar_at`."""
            self._start(tokens, index, source, nested)
            self._require_partition(2)
            return super()._parse_window(exp.Null(), alias=True), self._index

        def _start(self, tokens: list[Token], index: int, source: SourceText, nested: NestedQueries) -> None:
            self.reset()
            self.sql = source.text
            self._source = source
            self._nested = nested
            self._tokens = tokens
            self._tokens_size = len(tokens)
            self._index = -1
            self._advance(index + 1)

        def expression(
            self, instance: exp.Expression, token: Token | None = None, comments: list[str] | None = None
        ) -> exp.Expression:
            """Record where a node is, also for the kinds for which sqlglot does not."""
            self._require_left(instance)
            instance = super().expression(instance, token, comments)
            place = token or self._prev
            if place and "start" not in instance.meta:
                instance.meta["start"] = place.start
            return instance

        def _require_left(self, instance: exp.Expression) -> None:
            """Refuse an operator with nothing left of it, at the operator; sqlglot does so after its end."""
            right = instance.args.get("expression")
            if not isinstance(instance, exp.Binary) or instance.this or not isinstance(right, exp.Expression):
                return
            start = min(part.meta.get("start", len(self.sql)) for part in right.walk())
            index = next((at for at, token in enumerate(self._tokens) if token.start >= start), 0)
            operator = f"Required keyword: 'this' missing for {type(instance)}"
            raise ScalarError(operator, self._tokens[index - 1], index - 1)

        def build_cast(self, strict: bool, **parts: Any) -> exp.Expression:
            """A cast; but a number with a suffix, such as 10L, is a literal that knows its suffix."""
            number, suffix = parts["this"], self._prev
            if isinstance(number, exp.Literal) and number.meta.get("start") == suffix.start:
                number.meta["suffix"] = suffix.text.upper()
                return number
            return super().build_cast(strict, **parts)

        def typed_literal(self, text: exp.Expression, to: exp.Expression) -> exp.Expression:
            """`DATE '...'` or `TIMESTAMP '...'`, distinguished from a cast."""
            cast = self.expression(exp.Cast(this=text, to=to))
            cast.meta["literal"] = True
            return cast

        def trim_of(self) -> exp.Expression:
            """The arguments of TRIM, also as `LEADING 'x' FROM y`."""
            trim = self._parse_trim()
            names = {"LEADING": "TRIM LEADING", "TRAILING": "TRIM TRAILING"}
            characters = trim.args.get("expression")
            if characters is None:
                name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(trim.args.get("position"), "TRIM")
                return self._called(name, [trim.this])
            return self._called(names.get(trim.args.get("position"), "BTRIM"), [trim.this, characters])

        def with_words(self, name: str) -> exp.Expression:
            """Arguments with words between them: `x FROM 1 FOR 2`, or `'a' IN x`."""
            arguments = self._parse_csv(self._parse_bitwise)
            words = (TokenType.FROM, TokenType.FOR) if name == "SUBSTRING" else (TokenType.IN,)
            while self._match_set(words):
                arguments.append(self._parse_bitwise())
            return self._called(name, arguments)

        def from_json(self) -> exp.Expression:
            """`text, 'a BIGINT, b ARRAY<STRING>'`, in which the type becomes NULL of that type."""
            arguments = self._parse_csv(self._parse_bitwise)
            written = arguments[1] if len(arguments) == 2 else None
            if isinstance(written, exp.Literal) and written.is_string:
                text = str(written.this)
                text = text if _NESTED_TYPE.match(text) else f"STRUCT<{text}>"
                try:
                    to = exp.DataType.build(text, dialect=Headrace)
                except (SqlglotError, IndexError, AttributeError, TypeError, ValueError):
                    # sqlglot fails with errors of its own where a text ends too early.
                    self.raise_error(
                        "this is not a valid type, such as 'a BIGINT, b ARRAY<STRING>'", self._prev
                    )
                arguments[1] = self.expression(exp.Cast(this=self.expression(exp.Null()), to=to))
            return self._called("FROM_JSON", arguments)

        def hexadecimal(self, token: Token) -> exp.Expression:
            """X'4142', a BINARY of its bytes."""
            return self._called(
                "UNHEX", [self.expression(exp.Literal(this=token.text, is_string=True), token)]
            )

        def raw_text(self, token: Token) -> exp.Expression:
            """r'\\d+', a text in which a backslash is a character like others."""
            return self.expression(exp.Literal(this=token.text, is_string=True), token)

        def _called(self, name: str, arguments: list[Any]) -> exp.Expression:
            return self.expression(exp.Anonymous(this=name, expressions=[part for part in arguments if part]))

        def _parse_interval_span(
            self, this: exp.Expression, parse_function_unit: bool = True
        ) -> exp.Interval:
            """The unit after INTERVAL and its number; sqlglot would drop what it does not know of a text."""
            first = self._unit_of_interval()
            if first is not None and self._match_text_seq("TO"):
                last = self._unit_of_interval()
                if last is None:
                    self.raise_error("a unit is missing after TO", self._prev)
                first = self.expression(exp.IntervalSpan(this=first, expression=last))
            return self.expression(exp.Interval(this=this, unit=first))

        def _unit_of_interval(self) -> exp.Var | None:
            word = str(self._curr.text).upper() if self._curr else ""
            if unit_of(word) is None and word.removesuffix("S") not in CALENDAR:
                return None
            self._advance()
            return self.expression(exp.Var(this=word))

        def raise_error(self, message: str, token: Token | None = None) -> None:
            """Raise at once, with the token."""
            if token is None or message in _BEHIND:
                raise ScalarError(message, self._curr or None, self._index)
            raise ScalarError(message, token, self._tokens.index(token))

        def _parse_disjunction(self) -> exp.Expression | None:
            """An expression; a literal alone skips the levels of operators, since lists of them are long."""
            alone = self._curr and self._next and self._next.token_type in _ENDS_LITERAL
            if alone and self._curr.token_type in _LITERALS:
                return self._parse_primary()
            return super()._parse_disjunction()

        def _parse_in(self, this: exp.Expression | None, alias: bool = False) -> exp.Expression:
            if not (self._next and self._next.token_type == LIST_TOKEN):
                return super()._parse_in(this, alias)
            self._advance()
            token = self._curr
            self._advance()
            listed = self.expression(list_node(token.text), token)
            found = self.expression(exp.In(this=this, expressions=[listed]))
            self._match_r_paren(found)
            return found

        def _parse_unary(self) -> exp.Expression | None:
            start = self._curr
            node = super()._parse_unary()
            if node is not None and start:
                # The place of an operator, call or parenthesis is where it starts, not where it was complete.
                node.meta["start"] = start.start
            return node

        def _parse_select(self, *_: object, **__: object) -> exp.Expression | None:
            start = self._curr
            found = self._nested(self._index) if start else None
            if found is None:
                return None
            query, index = found
            self._advance(index - self._index)
            node = self.expression(Nested(query=query))
            node.meta["start"] = start.start
            return node

        def _parse_window(self, this: exp.Expression, alias: bool = False) -> exp.Expression:
            if self._match_text_seq("WITHIN", "GROUP"):
                key = self._parse_wrapped(self._parse_order)
                this = self.expression(exp.WithinGroup(this=this, expression=key))
            if self._match_pair(TokenType.FILTER, TokenType.L_PAREN):
                if not self._match(TokenType.WHERE):
                    self.raise_error("the word WHERE is missing after FILTER")
                condition = self._parse_disjunction()
                self._match_r_paren()
                this = self.expression(exp.Filter(this=this, expression=condition))
            if self._match_text_seq("WITHIN"):
                this = self._within(this)
            refuse_after_call(self._curr, self._next, self._source)
            if self._curr and self._curr.token_type == TokenType.OVER:
                self._require_partition(2)
                return super()._parse_window(this, alias)
            return this

        def _parse_window_spec(self) -> dict[str, Any]:
            """A side of a frame; or the bounds of one that ends with its row."""
            bounded = self._curr and str(self._curr.text).upper() in ("MIN", "MAX")
            if not bounded or str(self._prev.text).upper() != "RANGE":
                return dict(super()._parse_window_spec())
            if not self._match_text_seq("MIN"):
                self.raise_error("the word MIN is missing, before MAX", self._curr)
            smallest = self._frame_length("the smallest length after MIN")
            if self._curr and str(self._curr.text).upper() in self.WINDOW_SIDES:
                found = f"a frame with MIN and MAX has no {str(self._curr.text).upper()}"
                self.raise_error(f"{found}{_BOUNDS_USAGE}", self._curr)
            if not (self._match(TokenType.COMMA) and self._match_text_seq("MAX")):
                found = "', MAX' is missing after the smallest length of a frame"
                self.raise_error(f"{found}{_BOUNDS_USAGE}", self._prev)
            largest = self._frame_length("the largest length after MAX")
            bounds = self.expression(FrameBounds(this=smallest, expression=largest))
            return {
                "value": bounds,
                "side": self._prev.text if self._match_texts(self.WINDOW_SIDES) else None,
            }

        def _frame_length(self, what: str) -> Any:
            """`5 MINUTES`, `INTERVAL '5' MINUTES` or `5`."""
            if not (self._curr and self._curr.token_type == TokenType.NUMBER):
                length = self._parse_bitwise()
                if length is None:
                    self.raise_error(f"{what} is missing", self._prev)
                return length
            number = self._parse_primary()
            unit = self._unit_of_interval()
            return number if unit is None else self.expression(exp.Interval(this=number, unit=unit))

        def _within(self, this: exp.Expression) -> exp.Expression:
            """What follows WITHIN: `1 PERCENT`, and LOWER BOUND or UPPER BOUND."""
            percent = self._parse_number()
            if percent is None:
                self.raise_error(f"a percentage is missing after WITHIN{_WITHIN_USAGE}")
            if not self._match_text_seq("PERCENT"):
                self.raise_error(f"the word PERCENT is missing after WITHIN{_WITHIN_USAGE}")
            side = next((one for one in ("LOWER", "UPPER") if self._match_text_seq(one, "BOUND")), None)
            if self._curr and self._curr.token_type == TokenType.OVER:
                self.raise_error("windows of OVER are exact, and take no WITHIN")
            return self.expression(
                WithinPercent(this=this, percent=percent, side=side and exp.Var(this=side))
            )

        def _require_partition(self, ahead: int) -> None:
            """Refuse PARTITION BY so many tokens ahead with nothing after it."""
            first, second = (
                self._tokens[self._index + more : self._index + more + 1] for more in (ahead, ahead + 1)
            )
            partitioned = first and first[0].token_type == TokenType.PARTITION_BY
            if partitioned and (not second or second[0].token_type in _ENDS_PARTITION):
                self.raise_error("a column is missing after PARTITION BY", first[0])

        def _parse_bracket(self, this: exp.Expression | None = None) -> exp.Expression | None:
            """The subscripts after an expression: `[1]['a']`."""
            while this is not None and self._match(TokenType.L_BRACKET):
                index = self._parse_disjunction()
                if index is None:
                    self.raise_error("a subscript is missing after [")
                if not self._match(TokenType.R_BRACKET):
                    self.raise_error("']' is missing")
                this = self.expression(exp.Bracket(this=this, expressions=[index]))
            return this


def shown_of(node: exp.Expression) -> str:
    """A part of an expression as SQL, for messages; queries in it are shown as `...`."""
    if isinstance(node, Nested):
        return "(...)"
    copy = node.copy()
    for nested in list(copy.find_all(Nested)):
        nested.replace(exp.Var(this="..."))
    return str(copy.sql())


def side_of(node: WithinPercent, side: str | None) -> WithinPercent:
    """The same aggregate, with its bound LOWER or UPPER in the place of the estimate."""
    copy: WithinPercent = node.copy()
    if side is not None:
        copy.set("side", exp.Var(this=side))
    return copy


def position_of(node: exp.Expression) -> Position:
    """Where a scalar expression starts, as the cursor has noted it."""
    position: Position = node.meta["position"]
    return position
