"""The function table: what each function and operator takes, and the type of what it gives.

The meaning is Spark SQL's in ANSI mode; `headrace.reference.scalars` defines it row by row. Nothing depends
on anything but the row: there is no current time and no random number. On purpose it differs from Spark:

- A call fails where an argument fails, even beside a NULL: `NULL + 1 / 0` fails. BETWEEN and IN as well look
  at all their arguments; only CASE, IF, COALESCE, AND and OR go from left to right.
- -0 and 0 are one value in every respect, as in grouping: as a STRING both are 0.0.
- NaN has no counterpart among DECIMALs (Spark: NULL) nor a FLOOR (Spark: 0): the row fails.
- STRINGs do not become numbers in arithmetic, nor numbers TIMESTAMPs, without a CAST or TIMESTAMP_MICROS.
- The patterns of LIKE, REGEXP_LIKE, REGEXP_EXTRACT and DATE_FORMAT, the digits of ROUND and the unit of
  DATE_TRUNC are constants, and wrong ones refused.
- Regular expressions have RE2's syntax (Spark: Java's): no lookahead, no references to groups; `.` is any
  character but a line feed, and `$` is the end of the text, even where a line feed is the last character.
- Calendar texts begin with the year 1, and what is computed of points in time ends with the year 9999.
- REPEAT, LPAD and RPAD make texts of at most a million characters, SEQUENCE ARRAYs of at most 10,000 values.
- Of several entries with one key in a MAP from outside the last one counts. MAP_KEYS and MAP_VALUES are in
  the order of the keys. The path of GET_JSON_OBJECT is a constant without `*`.
- An INTERVAL is no value of its own: it is compared, and added to points in time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headrace.errors import LanguageError
from headrace.expressions.coercion import cast_arguments, common_type, literal, make_cast, make_try_cast
from headrace.expressions.functions import nested_rules as nested
from headrace.expressions.functions import pattern_rules
from headrace.expressions.functions import sketch_rules as sketches
from headrace.expressions.functions import text_rules as texts
from headrace.expressions.functions import time_rules as times
from headrace.expressions.functions import typing_rules as rules
from headrace.expressions.functions.typing_rules import make_case
from headrace.expressions.tree import Arguments, Expression
from headrace.schema import BIGINT, BINARY, BOOLEAN, STRING
from headrace.suggestions import did_you_mean

__all__ = [
    "FUNCTIONS",
    "SYNONYMS",
    "argument_count",
    "cast_arguments",
    "common_type",
    "literal",
    "make_case",
    "make_cast",
    "make_try_cast",
    "resolve",
]

TypingRule = Callable[[str, Arguments], Expression]


@dataclass(frozen=True)
class _Entry:
    """How many arguments a function takes (`most` None: any number) and how its call is typed."""

    least: int
    most: int | None
    rule: TypingRule


def resolve(name: str, arguments: Arguments) -> Expression:
    """A typed call of a function or operator, its arguments cast to what it takes.

    Args:
        name: the function's name or the operator's symbol, in upper case; `NEGATE` is the unary minus.
        arguments: the bound arguments.

    Raises:
        LanguageError: no such function, or one that does not take such arguments; without a position.
    """
    name = SYNONYMS.get(name, name)
    entry = _TABLE.get(name)
    if entry is None:
        raise LanguageError(f"there is no function {name}", hint=did_you_mean(name, FUNCTIONS, most=3))
    count = len(arguments)
    if count < entry.least or (entry.most is not None and count > entry.most):
        raise LanguageError(f"{name} takes {_count_text(entry)}, not {count}")
    return entry.rule(name, arguments)


def argument_count(name: str) -> str:
    """How many arguments a function takes, as text: 2, 1 to 3, at least 1."""
    return _count_text(_TABLE[name]).removesuffix("s").removesuffix(" argument")


def _count_text(entry: _Entry) -> str:
    count = f"{entry.least}" if entry.most == entry.least else f"{entry.least} to {entry.most}"
    if entry.most is None:
        count = f"at least {entry.least}"
    return f"{count} argument" + ("" if count.endswith("1") else "s")


# --- the table ---------------------------------------------------------------------------------------------

FUNCTIONS_OF_DOUBLES: Final = (
    *("LOG2", "LOG1P", "EXPM1", "CBRT", "SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN"),
    *("SINH", "COSH", "TANH", "DEGREES", "RADIANS"),
)
TRIMS: Final = ("TRIM LEADING", "TRIM TRAILING")
"""What `TRIM(LEADING 'x' FROM y)` and its counterpart call."""

_TABLE: Final[dict[str, _Entry]] = {
    **{name: _Entry(2, 2, rules.arithmetic) for name in ("+", "-", "*", "%")},
    "/": _Entry(2, 2, rules.divide),
    "DIV": _Entry(2, 2, rules.whole_division),
    "NEGATE": _Entry(1, 1, rules.negate),
    **{
        name: _Entry(2, 2, rules.compare)
        for name in ("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM")
    },
    "AND": _Entry(2, None, rules.logic),
    "OR": _Entry(2, None, rules.logic),
    "NOT": _Entry(1, 1, rules.negation),
    "IS NULL": _Entry(1, 1, rules.is_null),
    "IS NOT NULL": _Entry(1, 1, rules.is_null),
    "IN": _Entry(2, None, rules.contained),
    "BETWEEN": _Entry(3, 3, rules.compare),
    "LIKE": _Entry(2, 3, texts.like),
    "||": _Entry(2, 2, texts.concat),
    "ABS": _Entry(1, 1, rules.same_number),
    "SIGN": _Entry(1, 1, rules.double),
    "FLOOR": _Entry(1, 1, rules.whole_number),
    "CEIL": _Entry(1, 1, rules.whole_number),
    "ROUND": _Entry(1, 2, rules.rounding),
    "TRUNC": _Entry(1, 2, times.truncate),
    "HASH": _Entry(1, None, rules.hashing),
    "SQRT": _Entry(1, 1, rules.double),
    "EXP": _Entry(1, 1, rules.double),
    "LN": _Entry(1, 1, rules.double),
    "LOG10": _Entry(1, 1, rules.double),
    "POWER": _Entry(2, 2, rules.double),
    "LOG": _Entry(1, 2, rules.logarithm),
    **{name: _Entry(1, 1, rules.double) for name in FUNCTIONS_OF_DOUBLES},
    "ATAN2": _Entry(2, 2, rules.double),
    "PI": _Entry(0, 0, rules.constant(math.pi)),
    "E": _Entry(0, 0, rules.constant(math.e)),
    "GREATEST": _Entry(2, None, rules.pick),
    "LEAST": _Entry(2, None, rules.pick),
    "COALESCE": _Entry(1, None, rules.coalesce),
    "NULLIF": _Entry(2, 2, rules.null_if),
    "IF": _Entry(3, 3, rules.conditional),
    "NVL2": _Entry(3, 3, rules.null_choice),
    "DECODE": _Entry(3, None, rules.decode),
    "ISNULL": _Entry(1, 1, rules.null_test(False)),
    "ISNOTNULL": _Entry(1, 1, rules.null_test(True)),
    "LENGTH": _Entry(1, 1, texts.text_length),
    **{name: _Entry(1, 1, texts.text) for name in ("UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM")},
    "SUBSTRING": _Entry(2, 3, texts.substring),
    "CONCAT": _Entry(1, None, texts.concat),
    "REPLACE": _Entry(3, 3, texts.text),
    **{name: _Entry(2, 2, texts.text_test) for name in ("STARTSWITH", "ENDSWITH", "CONTAINS")},
    "GET_FIELD": _Entry(2, 2, nested.get_field),
    "[]": _Entry(2, 2, nested.subscript),
    **{name: _Entry(2, 2, nested.element_at) for name in ("ELEMENT_AT", "TRY_ELEMENT_AT")},
    "GET": _Entry(2, 2, nested.get),
    "ARRAY": _Entry(1, None, nested.make_array),
    "NAMED_STRUCT": _Entry(2, None, nested.named_struct),
    "MAP": _Entry(2, None, nested.make_map),
    "SIZE": _Entry(1, 1, nested.size),
    "ARRAY_JOIN": _Entry(2, 2, nested.array_join),
    **{name: _Entry(2, 2, nested.searching(BOOLEAN)) for name in ("ARRAY_CONTAINS", "MAP_CONTAINS_KEY")},
    **{name: _Entry(2, 2, nested.of_shapes) for name in ("SHAPE_DISTANCE", "DISCORD")},
    "ARRAY_POSITION": _Entry(2, 2, nested.searching(BIGINT)),
    "ARRAY_DISTINCT": _Entry(1, 1, nested.same_array),
    "SORT_ARRAY": _Entry(1, 2, nested.same_array),
    **{name: _Entry(1, 1, nested.extreme) for name in ("ARRAY_MIN", "ARRAY_MAX")},
    **{name: _Entry(1, 1, nested.map_part) for name in ("MAP_KEYS", "MAP_VALUES")},
    "SPLIT": _Entry(2, 2, nested.split),
    **{name: _Entry(2, 3, nested.sequence) for name in ("SEQUENCE", "GENERATE_SERIES")},
    "GET_JSON_OBJECT": _Entry(2, 2, nested.json_object),
    "FROM_JSON": _Entry(2, 2, nested.from_json),
    "TO_JSON": _Entry(1, 1, nested.to_json),
    "CONCAT_WS": _Entry(1, None, texts.concat_ws),
    **{name: _Entry(1, 1, texts.text) for name in ("REVERSE", "INITCAP", "MD5", "SHA1")},
    **{
        name: _Entry(2, 2, texts.taking((STRING, BIGINT), STRING))
        for name in ("LEFT", "RIGHT", "REPEAT", "SHA2")
    },
    **{name: _Entry(2, 3, texts.taking((STRING, BIGINT, STRING), STRING)) for name in ("LPAD", "RPAD")},
    "LOCATE": _Entry(2, 3, texts.taking((STRING, STRING, BIGINT), BIGINT)),
    "INSTR": _Entry(2, 2, texts.taking((STRING, STRING), BIGINT)),
    "TRANSLATE": _Entry(3, 3, texts.text),
    "SUBSTRING_INDEX": _Entry(3, 3, texts.taking((STRING, STRING, BIGINT), STRING)),
    **{name: _Entry(2, 2, texts.text) for name in ("BTRIM", *TRIMS)},
    **{name: _Entry(1, 1, texts.text_length) for name in ("ASCII", "CRC32")},
    "HEX": _Entry(1, 1, texts.hexadecimal),
    "UNHEX": _Entry(1, 1, texts.taking((STRING,), BINARY)),
    "THETA_HASH": _Entry(1, 1, sketches.hashed),
    "THETA_SKETCH": _Entry(1, 2, sketches.sketch),
    "THETA_UNION": _Entry(2, 3, sketches.joined),
    **{name: _Entry(2, 2, sketches.compared) for name in ("THETA_INTERSECTION", "THETA_DIFFERENCE")},
    "THETA_SKETCH_ESTIMATE": _Entry(1, 1, sketches.estimated),
    **{
        f"{name}_{suffix}": entry
        for suffix in ("BIGINT", "DOUBLE")
        for name, entry in {
            "KLL_SKETCH": _Entry(1, 2, sketches.quantile_sketch),
            "KLL_SKETCH_MERGE": _Entry(2, 2, sketches.compared),
            "KLL_SKETCH_GET_N": _Entry(1, 1, sketches.estimated),
            "KLL_SKETCH_GET_QUANTILE": _Entry(2, 2, sketches.quantile_of),
            "KLL_SKETCH_GET_RANK": _Entry(2, 2, sketches.rank_of),
        }.items()
    },
    "CHR": _Entry(1, 1, texts.taking((BIGINT,), STRING)),
    "LEVENSHTEIN": _Entry(2, 2, texts.text_length),
    "REGEXP_REPLACE": _Entry(3, 3, pattern_rules.regexp_replace),
    "REGEXP_COUNT": _Entry(2, 2, pattern_rules.regexp_count),
    "REGEXP_LIKE": _Entry(2, 2, pattern_rules.regexp_like),
    "REGEXP_EXTRACT": _Entry(2, 3, pattern_rules.regexp_extract),
    "SPLIT_PART": _Entry(3, 3, pattern_rules.split_part),
    **{name: _Entry(1, 1, times.date_part) for name in ("YEAR", "MONTH", "DAY")},
    **{name: _Entry(1, 1, times.time_part) for name in ("HOUR", "MINUTE", "SECOND")},
    **{
        name: _Entry(1, 1, times.week_part)
        for name in ("QUARTER", "WEEKOFYEAR", "WEEKDAY", "DAYOFWEEK", "DAYOFYEAR")
    },
    "EXTRACT": _Entry(2, 2, times.extract),
    "DATE_PART": _Entry(2, 2, times.extract),
    "LAST_DAY": _Entry(1, 1, times.last_day),
    "DATE_ADD": _Entry(2, 3, times.moved_date),
    "DATE_SUB": _Entry(2, 2, times.date_sub),
    "DATEDIFF": _Entry(2, 3, times.date_diff),
    "ADD_MONTHS": _Entry(2, 2, times.moved_date),
    "TIMESTAMPADD": _Entry(3, 3, times.timestamp_add),
    "TIMESTAMPDIFF": _Entry(3, 3, times.timestamp_diff),
    "DATE_TRUNC": _Entry(2, 2, times.date_trunc),
    "DATE_FORMAT": _Entry(2, 2, pattern_rules.date_format),
    "MAKE_DATE": _Entry(3, 3, times.make_date),
    "TO_TIMESTAMP": _Entry(1, 2, pattern_rules.to_timestamp),
    "TO_DATE": _Entry(1, 2, pattern_rules.to_date),
    "UNIX_TIMESTAMP": _Entry(1, 2, pattern_rules.unix_timestamp),
    "FROM_UNIXTIME": _Entry(1, 2, pattern_rules.from_unixtime),
    "UNIX_MICROS": _Entry(1, 1, times.unix_micros),
    **{name: _Entry(1, 1, times.unix_time) for name in ("UNIX_SECONDS", "UNIX_MILLIS")},
    "UNIX_DATE": _Entry(1, 1, times.unix_date),
    "TIMESTAMP_MICROS": _Entry(1, 1, times.timestamp_micros),
    **{name: _Entry(1, 1, times.from_unix) for name in ("TIMESTAMP_SECONDS", "TIMESTAMP_MILLIS")},
    **{name: _Entry(2, 2, times.in_zone) for name in ("FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP")},
}

SYNONYMS: Final = {
    "MOD": "%",
    "!=": "<>",
    "==": "=",
    "<=>": "IS NOT DISTINCT FROM",
    "CEILING": "CEIL",
    "POW": "POWER",
    "TRUNCATE": "TRUNC",
    "SIGNUM": "SIGN",
    "IFNULL": "COALESCE",
    "NVL": "COALESCE",
    "LEN": "LENGTH",
    "CHAR_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "LENGTH",
    "UCASE": "UPPER",
    "LCASE": "LOWER",
    "SUBSTR": "SUBSTRING",
    "DAYOFMONTH": "DAY",
    "DATEPART": "DATE_PART",
    "DATEADD": "DATE_ADD",
    "DATE_DIFF": "DATEDIFF",
    "TO_UNIX_TIMESTAMP": "UNIX_TIMESTAMP",
    "IIF": "IF",
    "ARRAY_SIZE": "SIZE",
    "CARDINALITY": "SIZE",
    "ARRAY_LENGTH": "SIZE",
    "MAKE_ARRAY": "ARRAY",
    "LIST_CONTAINS": "ARRAY_CONTAINS",
    "JSON_VALUE": "GET_JSON_OBJECT",
    "CHAR": "CHR",
    "SHA": "SHA1",
    "STRPOS": "INSTR",
    "POSITION": "LOCATE",
    "CHARINDEX": "LOCATE",
    "RLIKE": "REGEXP_LIKE",
    "REGEXP": "REGEXP_LIKE",
}
"""Other names of functions and operators."""

_WORDS: Final = {"NEGATE", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "DIV"}

OF_UNITS: Final = ("TIMESTAMPADD", "TIMESTAMPDIFF", "DATE_ADD", "DATEADD", "DATEDIFF", "DATE_DIFF")
"""The functions whose first argument, of three, is a unit."""

FUNCTIONS: Final[tuple[str, ...]] = tuple(
    sorted(name for name in (*_TABLE, *SYNONYMS) if name.replace("_", "").isalnum() and name not in _WORDS)
)
"""The names of the functions that a query may call, for messages and completion."""
