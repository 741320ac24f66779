"""Write the table of functions: `python scripts/write_functions.py` puts it into docs/functions.md.

Names, numbers of arguments, types and answers come from the code; here is an example for each function.
`--check` exits with 1 where the page is not what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import headrace as hr
from headrace.expressions.aggregates.functions import SYNONYMS
from headrace.expressions.functions import functions
from headrace.schema import sql_type
from headrace.value_texts import json_texts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "functions.md"

EXAMPLES = {
    "Numbers": """
        ABS(-3)
        ACOS(1)
        ASIN(0)
        ATAN(0)
        ATAN2(0, 1)
        CBRT(8)
        CEIL(1.2)
        COS(0)
        COSH(0)
        DEGREES(PI())
        E()
        EXP(0)
        EXPM1(0)
        FLOOR(-1.2)
        GREATEST(1, 3, 2)
        HASH('Spark', 3)
        LEAST(1, 3, 2)
        LN(1)
        LOG(2, 8)
        LOG10(1000)
        LOG1P(0)
        LOG2(8)
        MOD(7, 4)
        PI()
        POWER(2, 10)
        RADIANS(180)
        ROUND(2.345, 2)
        SIGN(-2)
        SIN(0)
        SINH(0)
        SQRT(16)
        TAN(0)
        TANH(0)
        TRUNC(-2.345, 1)
        """,
    "Texts": """
        ASCII('A')
        BTRIM('xxaxx', 'x')
        CHR(65)
        CONCAT('a', 1, 'b')
        CONCAT_WS('-', 'a', NULL, 'b')
        CONTAINS('stream', 'ea')
        CRC32('stream')
        ENDSWITH('stream', 'am')
        HEX('stream')
        INITCAP('of one word')
        INSTR('stream', 'e')
        LEFT('stream', 3)
        LENGTH('stream')
        LEVENSHTEIN('cat', 'cart')
        LOCATE('e', 'stream')
        LOWER('Stream')
        LPAD('7', 3, '0')
        LTRIM('  a ')
        MD5('stream')
        REGEXP_COUNT('a1b22', '[0-9]+')
        REGEXP_EXTRACT('room 12', '([a-z]+) ([0-9]+)', 2)
        REGEXP_LIKE('room 12', '[0-9]+')
        REGEXP_REPLACE('a1b22', '[0-9]+', '#')
        REPEAT('ab', 2)
        REPLACE('a.b.c', '.', '/')
        REVERSE('stream')
        RIGHT('stream', 2)
        RPAD('7', 3, '0')
        RTRIM(' a  ')
        SHA1('stream')
        SHA2('stream', 224)
        SPLIT_PART('a.b.c', '.', 2)
        STARTSWITH('stream', 'str')
        SUBSTRING('stream', 2, 3)
        SUBSTRING_INDEX('a.b.c', '.', 2)
        TRANSLATE('stream', 'se', '53')
        TRIM('  a ')
        UNHEX('6865')
        UPPER('stream')
        """,
    "Dates and times": """
        ADD_MONTHS(DATE '2024-01-31', 1)
        DATE_ADD(DATE '2024-02-28', 2)
        DATEDIFF(DATE '2024-03-01', DATE '2024-02-28')
        DATE_FORMAT(TIMESTAMP '2024-05-01T09:30:00Z', 'dd.MM.yyyy HH:mm')
        DATE_PART('week', DATE '2024-05-01')
        DATE_SUB(DATE '2024-03-01', 1)
        DATE_TRUNC('hour', TIMESTAMP '2024-05-01T09:30:00Z')
        DAY(DATE '2024-05-01')
        DAYOFWEEK(DATE '2024-05-01')
        DAYOFYEAR(DATE '2024-05-01')
        EXTRACT(HOUR FROM TIMESTAMP '2024-05-01T09:30:00Z')
        FROM_UNIXTIME(1714555800)
        FROM_UTC_TIMESTAMP(TIMESTAMP '2024-05-01T09:30:00Z', 'Europe/Berlin')
        HOUR(TIMESTAMP '2024-05-01T09:30:00Z')
        LAST_DAY(DATE '2024-02-10')
        MAKE_DATE(2024, 5, 1)
        MINUTE(TIMESTAMP '2024-05-01T09:30:00Z')
        MONTH(DATE '2024-05-01')
        QUARTER(DATE '2024-05-01')
        SECOND(TIMESTAMP '2024-05-01T09:30:15Z')
        TIMESTAMP_MICROS(1714555800000000)
        TIMESTAMP_MILLIS(1714555800000)
        TIMESTAMP_SECONDS(1714555800)
        TIMESTAMPADD(MINUTE, 90, TIMESTAMP '2024-05-01T09:30:00Z')
        TIMESTAMPDIFF(MINUTE, TIMESTAMP '2024-05-01T09:30:00Z', TIMESTAMP '2024-05-01T11:00:00Z')
        TO_DATE('01.05.2024', 'dd.MM.yyyy')
        TO_TIMESTAMP('01.05.2024 09:30', 'dd.MM.yyyy HH:mm')
        TO_UTC_TIMESTAMP(TIMESTAMP '2024-05-01T09:30:00Z', 'Europe/Berlin')
        UNIX_DATE(DATE '2024-05-01')
        UNIX_MICROS(TIMESTAMP '2024-05-01T09:30:00Z')
        UNIX_MILLIS(TIMESTAMP '2024-05-01T09:30:00Z')
        UNIX_SECONDS(TIMESTAMP '2024-05-01T09:30:00Z')
        UNIX_TIMESTAMP('2024-05-01 09:30:00')
        WEEKDAY(DATE '2024-05-01')
        WEEKOFYEAR(DATE '2024-05-01')
        YEAR(DATE '2024-05-01')
        """,
    "ARRAYs, STRUCTs, MAPs and JSON": """
        ARRAY(1, 2)
        ARRAY_CONTAINS(ARRAY(1, 2), 2)
        ARRAY_DISTINCT(ARRAY(1, 2, 1))
        ARRAY_JOIN(ARRAY('a', 'b'), ', ')
        ARRAY_MAX(ARRAY(1, 3, 2))
        ARRAY_MIN(ARRAY(3, 1, 2))
        ARRAY_POSITION(ARRAY('a', 'b'), 'b')
        DISCORD(ARRAY(1, 2, 1, 2, 1, 5), 3)
        ELEMENT_AT(ARRAY('a', 'b'), -1)
        FROM_JSON('{"a": 1, "b": [2]}', 'a BIGINT, b ARRAY<BIGINT>')
        GENERATE_SERIES(1, 7, 3)
        GET(ARRAY('a', 'b'), 0)
        GET_FIELD(NAMED_STRUCT('a', 1), 'a')
        GET_JSON_OBJECT('{"a": {"b": [5, 7]}}', '$.a.b[1]')
        MAP('a', 1, 'b', 2)
        MAP_CONTAINS_KEY(MAP('a', 1), 'b')
        MAP_KEYS(MAP('b', 1, 'a', 2))
        MAP_VALUES(MAP('b', 1, 'a', 2))
        NAMED_STRUCT('a', 1, 'b', 'x')
        SEQUENCE(3, 1)
        SHAPE_DISTANCE(ARRAY(7, 10, 20, 30), ARRAY(1, 2, 4))
        SIZE(ARRAY(1, 2))
        SORT_ARRAY(ARRAY(1, 3, 2), FALSE)
        SPLIT('a, b,c', ', *')
        TO_JSON(NAMED_STRUCT('a', 1))
        TRY_ELEMENT_AT(ARRAY('a'), 2)
        """,
    "Sketches": """
        KLL_SKETCH_BIGINT(ARRAY(1, 2, 2))
        KLL_SKETCH_DOUBLE(ARRAY(1.5D), 100)
        KLL_SKETCH_GET_N_BIGINT(KLL_SKETCH_BIGINT(ARRAY(1, 2, 2)))
        KLL_SKETCH_GET_N_DOUBLE(KLL_SKETCH_DOUBLE(ARRAY(1.5D)))
        KLL_SKETCH_GET_QUANTILE_BIGINT(KLL_SKETCH_BIGINT(ARRAY(1, 2, 3)), 0.5)
        KLL_SKETCH_GET_QUANTILE_DOUBLE(KLL_SKETCH_DOUBLE(ARRAY(1.5D)), 1)
        KLL_SKETCH_GET_RANK_BIGINT(KLL_SKETCH_BIGINT(ARRAY(1, 2, 3, 4)), 3)
        KLL_SKETCH_GET_RANK_DOUBLE(KLL_SKETCH_DOUBLE(ARRAY(1.5D)), 1)
        KLL_SKETCH_MERGE_BIGINT(KLL_SKETCH_BIGINT(ARRAY(1)), KLL_SKETCH_BIGINT(ARRAY(2)))
        KLL_SKETCH_MERGE_DOUBLE(KLL_SKETCH_DOUBLE(ARRAY(1.5D)), KLL_SKETCH_DOUBLE(ARRAY(2D)))
        THETA_DIFFERENCE(THETA_SKETCH(ARRAY(1, 2)), THETA_SKETCH(ARRAY(2)))
        THETA_HASH('stream')
        THETA_INTERSECTION(THETA_SKETCH(ARRAY(1, 2)), THETA_SKETCH(ARRAY(2)))
        THETA_SKETCH(ARRAY(THETA_HASH('a')))
        THETA_SKETCH_ESTIMATE(THETA_SKETCH(ARRAY(THETA_HASH('a'), THETA_HASH('b'), THETA_HASH('a'))))
        THETA_UNION(THETA_SKETCH(ARRAY(1)), THETA_SKETCH(ARRAY(2)))
        """,
    "NULL and choice": """
        COALESCE(NULL, 2, 3)
        DECODE(2, 1, 'one', 2, 'two', 'many')
        IF(1 < 2, 'yes', 'no')
        ISNOTNULL(1)
        ISNULL(NULL)
        NULLIF(1, 1)
        NVL2(NULL, 'known', 'unknown')
        """,
}
"""Examples of the functions of a row, by what they are about."""

ROWS = {"ts": [1, 2, 3, 4], "k": ["b", "a", "b", None], "x": [3, 1, 3, 6], "y": [1.0, 2.0, 3.0, 4.0]}
AGGREGATES = """
    APPROX_COUNT_DISTINCT(k)
    APPROX_PERCENTILE(x, 0.75)
    APPROX_TOP_K(x, 1)
    ARRAY_AGG(x)
    AUTOCORR(y, 1 ORDER BY ts)
    AVG(x)
    BIT_AND(x)
    BIT_OR(x)
    BIT_XOR(x)
    BOOL_AND(x > 1)
    BOOL_OR(x > 5)
    CORR(x, y)
    CORRELATED_PAIRS(x = 3, ts, y, 3, 0.5, NULL, 0, 2)
    COUNT(k)
    COUNT_IF(x = 3)
    COVAR_POP(x, y)
    COVAR_SAMP(x, y)
    EWMA(y, 0.5 ORDER BY ts)
    EWM_STDDEV(y, 0.5 ORDER BY ts)
    FIRST(x ORDER BY ts)
    GROUP_CONCAT(k)
    KLL_MERGE_AGG_BIGINT(KLL_SKETCH_BIGINT(ARRAY(x)))
    KLL_MERGE_AGG_DOUBLE(KLL_SKETCH_DOUBLE(ARRAY(y)))
    KLL_SKETCH_AGG_BIGINT(x)
    KLL_SKETCH_AGG_DOUBLE(y)
    LAST(x ORDER BY ts)
    LISTAGG(k, '-') WITHIN GROUP (ORDER BY ts)
    MAX(x)
    MAX_BY(x, y)
    MEDIAN(x)
    MIN(x)
    MIN_BY(k, y)
    MODE(x)
    PERCENTILE(x, 0.75)
    PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY x)
    REGR_AVGX(y, x)
    REGR_AVGY(y, x)
    REGR_COUNT(y, x)
    REGR_INTERCEPT(y, x)
    REGR_R2(y, x)
    REGR_SLOPE(y, x)
    REGR_SXX(y, x)
    REGR_SXY(y, x)
    REGR_SYY(y, x)
    STDDEV(x)
    STDDEV_POP(x)
    STRING_AGG(k, ', ' ORDER BY k DESC)
    SUM(x)
    THETA_SKETCH_AGG(x)
    THETA_UNION_AGG(THETA_SKETCH(ARRAY(THETA_HASH(x))))
    TOP_K(x, 2)
    VAR_POP(x)
    VARIANCE(x)
    """
"""Examples of the aggregates, over the rows above."""

BY_ANOTHER = {"MAX_BY": ["ARG_MAX"], "MIN_BY": ["ARG_MIN"]}

TOP = """# Functions

Every function that a query may call, by any of its names, with an example and its answer as JSON. The
[language](language.md#operators-and-functions) says what they have in common, what may be in and after an
aggregate's parentheses, and how to define functions of your own, which `SHOW FUNCTIONS` lists.

`scripts/write_functions.py` writes this page, from the code, and a test compares them.
"""
OVER_ROWS = """
The examples are over these rows of a window:

| ts | k | x | y |
|---|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    also = names_by_function()
    parts = [TOP]
    for title, examples in EXAMPLES.items():
        parts += [f"\n## {title}\n\n", *table(lines_of(examples), "one", also, counted=True)]
    parts += ["\n## Aggregates\n", OVER_ROWS]
    for row in zip(*ROWS.values(), strict=True):
        parts.append(f"| {' | '.join('NULL' if value is None else str(value) for value in row)} |\n")
    parts += ["\n", *table(lines_of(AGGREGATES), "data WINDOW(RANGE UNBOUNDED)", also, counted=False)]
    return "".join(parts)


def lines_of(examples: str) -> list[str]:
    """The examples of a text, one a line."""
    return [line.strip() for line in examples.strip().splitlines()]


def names_by_function() -> dict[str, list[str]]:
    """The other names of each function."""
    also: dict[str, list[str]] = {name: list(names) for name, names in BY_ANOTHER.items()}
    for name, function in (*functions.SYNONYMS.items(), *SYNONYMS.items()):
        if name in functions.FUNCTIONS or name in SYNONYMS:
            also.setdefault(function, []).append(name)
    return also


def table(examples: list[str], rows: str, also: dict[str, list[str]], *, counted: bool) -> Iterator[str]:
    """The lines of a table: each example's function and its other names, and the example's answer.

    Args:
        examples: one call of each function.
        rows: what FROM names for them.
        also: the other names of functions.
        counted: whether there is a column with the number of arguments.
    """
    titles = ["Function", *["Arguments"] * counted, "Example", "Answer", "Type"]
    yield f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|\n"
    for example, value, dtype in answers(examples, rows):
        name = example.partition("(")[0]
        others = sorted(also.get(name, ()))
        shown = f"`{name}`" + (f" (`{'`, `'.join(others)}`)" if others else "")
        count = [functions.argument_count(functions.SYNONYMS.get(name, name))] if counted else []
        yield f"| {' | '.join([shown, *count, f'`{example}`', f'`{value}`', f'`{dtype}`'])} |\n"


def answers(examples: list[str], rows: str) -> Iterator[tuple[str, str, str]]:
    """Each example with its answer and the type of that; one SELECT has no exact and approximate ones."""
    approximate = [example for example in examples if example.startswith("APPROX_")]
    found = of_one_query(approximate, rows) if approximate else {}
    found |= of_one_query([example for example in examples if example not in found], rows)
    for example in examples:
        yield example, *found[example]


def of_one_query(examples: list[str], rows: str) -> dict[str, tuple[str, str]]:
    """By example its answer and the type of that."""
    with hr.connect(runner="inline") as db:
        db.stream("one", pa.table({"ts": [1]}), timestamp="ts")
        db.stream("data", pa.table(ROWS), timestamp="ts")
        listed = ", ".join(f"{example} AS c{place}" for place, example in enumerate(examples))
        query = db.query(f"SELECT {listed} FROM {rows}")
        run = db.run()
        assert not run.failed, run.failed
        last = query.history().slice(query.history().num_rows - 1).to_batches()[0]
        types = [field.type for field in query.schema]
    found = {}
    for place, example in enumerate(examples):
        (text,) = json_texts(last.column(place)).to_pylist()
        found[example] = text, sql_type(types[place])
    return found


def main() -> None:
    """Write the page, or compare it."""
    if "--check" in sys.argv[1:]:
        if PAGE.read_text() != page():
            sys.exit("docs/functions.md is not what the code says: run python scripts/write_functions.py")
        return
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
