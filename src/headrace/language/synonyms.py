"""Functions of other systems, and what to write in their place; names close by spelling come after them."""

from __future__ import annotations

from typing import Final

_FROM_DATA = "answers depend on the data alone; use a column"
_FROM_CLOCK = (
    "use a column; a stream that is created with TIMESTAMP BY ARRIVAL has one with the clock's reading"
)
_NO_PATTERN = "use REGEXP_LIKE and REGEXP_EXTRACT, or define it in Python, db.function(...)"

WINDOWS: Final = (
    *("TUMBLE", "HOP", "SESSION", "WINDOW", "SESSION_WINDOW", "TIME_BUCKET", "DATE_BIN", "TIME_SLICE"),
    *(
        "TUMBLINGWINDOW",
        "HOPPINGWINDOW",
        "SLIDINGWINDOW",
        "TUMBLE_START",
        "TUMBLE_END",
        "HOP_START",
        "HOP_END",
    ),
)
"""Functions in the place of which a stream has a window."""

CALLS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("ISTREAM", "DSTREAM", "RSTREAM"), "write SELECT ISTREAM(a, b) FROM ..., or ISTREAM(SELECT ...)"
    ),
    **dict.fromkeys(
        (
            *(
                "CURRENT_DATE",
                "CURRENT_TIME",
                "SYSDATE",
            ),
            *("TODAY", "PROCTIME"),
        ),
        _FROM_CLOCK,
    ),
    **dict.fromkeys(("RAND", "RANDOM", "UUID"), _FROM_DATA),
    "STREAM": "leave STREAM out: every query is continuous",
    "UNIQUE": "write DISTINCT",
    **dict.fromkeys(
        ("ROW_NUMBER", "LAG", "RANK", "DENSE_RANK", "FIRST_VALUE", "LAST_VALUE"),
        "write OVER (PARTITION BY k ORDER BY ts) after it",
    ),
    **dict.fromkeys(("ANY_VALUE", "ARBITRARY"), "use MIN or MAX"),
    **dict.fromkeys(
        ("SYSTIMESTAMP", "CLOCK_TIMESTAMP", "STATEMENT_TIMESTAMP", "TRANSACTION_TIMESTAMP"), _FROM_CLOCK
    ),
    **dict.fromkeys(("GEN_RANDOM_UUID", "GENERATE_UUID", "NEWID"), _FROM_DATA),
    "LEAD": "rows that are yet to come are not known; use LAG, or a join with the later rows",
    **dict.fromkeys(("BITAND", "BITOR", "BITXOR"), "there are no operators on bits, only aggregates of them"),
    **dict.fromkeys(("ANY", "SOME", "ALL", "EXISTS"), "a query follows it: (SELECT ... FROM ...)"),
    **dict.fromkeys(("REGEXP_INSTR", "REGEXP_EXTRACT_ALL"), _NO_PATTERN),
}
"""Functions that are refused, with a hint."""

_CASTS: Final = {
    "STRING": ("TO_VARCHAR", "TO_STRING"),
    "DOUBLE": ("TO_NUMBER", "TO_DOUBLE"),
    "BIGINT": ("TO_INTEGER", "TO_BIGINT"),
    "BOOLEAN": ("TO_BOOLEAN",),
}
_BY_FORMAT: Final = "'yyyy-MM-dd HH:mm:ss'"

_RENAMED: Final = {
    "UNIX_SECONDS({0})": ("TO_UNIXTIME", "EPOCH", "UNIXEPOCH"),
    "UNIX_MILLIS({0})": ("EPOCH_MS",),
    "WEEKOFYEAR({0})": ("WEEK", "ISO_WEEK", "ISOWEEK"),
    "DAYOFWEEK({0})": ("DOW", "DAY_OF_WEEK"),
    "DAYOFYEAR({0})": ("DOY", "DAY_OF_YEAR"),
    "HOUR({0})": ("HOUR_OF_DAY",),
    "MAKE_DATE({0}, {1}, {2})": ("DATE_FROM_PARTS", "DATEFROMPARTS"),
    f"DATE_FORMAT({{0}}, {_BY_FORMAT})": ("TO_CHAR", "STRFTIME"),
    f"DATE_FORMAT({{1}}, {_BY_FORMAT})": ("FORMAT_TIMESTAMP",),
    "DATE_FORMAT({1}, 'yyyy-MM-dd')": ("FORMAT_DATE",),
    f"TO_TIMESTAMP({{0}}, {_BY_FORMAT})": ("STRPTIME", "DATE_PARSE"),
    f"TO_TIMESTAMP({{1}}, {_BY_FORMAT})": ("PARSE_TIMESTAMP",),
    "TO_DATE({0}, 'yyyy-MM-dd')": ("STR_TO_DATE",),
    "TO_DATE({1}, 'yyyy-MM-dd')": ("PARSE_DATE",),
    "TO_TIMESTAMP({0})": ("FROM_ISO8601_TIMESTAMP",),
    "DATE_TRUNC({0}, {1})": ("DATETRUNC",),
    "DATE_TRUNC('hour', {0})": ("TIMESTAMP_TRUNC", "DATETIME_TRUNC"),
    "{0} + INTERVAL '1' HOUR": ("TIMESTAMP_ADD",),
    "{0} - INTERVAL '1' HOUR": ("TIMESTAMP_SUB",),
    "TIMESTAMPDIFF(SECOND, {1}, {0})": ("TIMESTAMP_DIFF", "AGE"),
    "IF({0}, {1}, {2})": ("IFF",),
    "COALESCE({0}, 0)": ("ZEROIFNULL",),
    "NULLIF({0}, 0)": ("NULLIFZERO",),
    "DECODE({all})": ("SWITCH",),
    "TRY_CAST({0} AS DOUBLE)": ("TRY_TO_NUMBER", "TRY_TO_DOUBLE"),
    "SPLIT({0}, {1})": ("STRING_SPLIT", "SPLIT_TO_ARRAY", "STRING_TO_ARRAY", "REGEXP_SPLIT_TO_ARRAY"),
    "SPLIT_PART({0}, {1}, {2} + 1)": ("SPLIT_INDEX",),
    "ARRAY_JOIN({0}, {1})": ("ARRAY_TO_STRING",),
    "REGEXP_EXTRACT({0}, {1}, 0)": ("REGEXP_SUBSTR", "REGEXPEXTRACT", "REGEXP_MATCH"),
    "REGEXP_LIKE({0}, {1})": ("REGEXP_MATCHES", "REGEXP_CONTAINS"),
    "SUBSTRING({0}, {1}, {2})": ("MID",),
    "CONCAT_WS({all})": ("CONCATWS",),
    "REPEAT(' ', {0})": ("SPACE",),
    "REPEAT({0}, {1})": ("REPLICATE",),
    "STARTSWITH({0}, {1})": ("STARTS_WITH", "START_WITH"),
    "ENDSWITH({0}, {1})": ("ENDS_WITH", "END_WITH"),
    "CONTAINS({0}, {1})": ("CONTAINS_SUBSTR", "STRING_CONTAINS"),
    "ARRAY_CONTAINS({0}, {1})": ("HAS", "LIST_HAS"),
    "LENGTH({0})": ("STRING_LENGTH",),
    "UPPER({0})": ("UPPERCASE", "TOUPPER"),
    "LOWER({0})": ("LOWERCASE", "TOLOWER"),
    "INITCAP({0})": ("TITLE", "CAPITALIZE", "PROPER"),
    "TRIM({0})": ("STRIP",),
    "LTRIM({0})": ("LSTRIP",),
    "RTRIM({0})": ("RSTRIP",),
    "SHA2({0}, 256)": ("SHA256",),
    "SHA2({0}, 512)": ("SHA512",),
    "HASH({all})": ("MURMUR_HASH", "MURMUR3"),
    "GET_JSON_OBJECT({0}, {1})": (
        "JSON_EXTRACT", "JSON_EXTRACT_SCALAR", "JSON_EXTRACT_STRING", "JSON_QUERY", "JSON_EXTRACT_PATH_TEXT",
    ),
    "TO_JSON({0})": ("TO_JSONB", "TO_JSON_STRING"),
    "ARRAY({all})": ("LIST_VALUE", "ARRAY_CONSTRUCT"),
    "STRUCT({all})": ("ROW", "STRUCT_PACK"),
    "NAMED_STRUCT({all})": ("OBJECT_CONSTRUCT",),
    "FROM {table}, UNNEST({0}) AS t (item)": ("EXPLODE", "UNNEST", "FLATTEN"),
    "FROM {table}, UNNEST({0}) WITH ORDINALITY AS t (item, place)": ("POSEXPLODE",),
    "ARRAY_AGG({0})": ("COLLECT", "LIST", "GROUP_ARRAY", "GROUPARRAY"),
    "ARRAY_AGG(DISTINCT {0})": ("COLLECT_SET", "ARRAY_AGG_DISTINCT"),
    "STRING_AGG({0}, ',')": ("WM_CONCAT",),
    "COUNT(DISTINCT {0})": ("NUNIQUE", "COUNT_DISTINCT", "UNIQ", "UNIQEXACT"),
    "COUNT_IF({0})": ("COUNTIF",),
    "SUM({0}) FILTER (WHERE {1})": ("SUMIF", "SUM_IF"),
    "AVG({0}) FILTER (WHERE {1})": ("AVGIF", "AVG_IF"),
    "PERCENTILE({0}, {1})": ("QUANTILE", "QUANTILE_CONT"),
    "PERCENTILE({0}, 0.5)": ("QUANTILES",),
    "APPROX_PERCENTILE({0}, {1})": ("PERCENTILE_APPROX", "APPROX_QUANTILE"),
    "APPROX_PERCENTILE({0}, 0.5)": ("APPROX_QUANTILES", "APPROX_MEDIAN"),
    "TOP_K({all})": ("TOPK", "APPROX_TOPK", "APPROX_TOP_COUNT"),
    "APPROX_COUNT_DISTINCT({0})": ("APPROX_DISTINCT", "HLL_COUNT"),
    "LAST({0} ORDER BY ts)": ("LATEST_BY_OFFSET",),
    "FIRST({0} ORDER BY ts)": ("EARLIEST_BY_OFFSET",),
    "MAX_BY({0}, {1})": ("MAXBY", "ARGMAX"),
    "MIN_BY({0}, {1})": ("MINBY", "ARGMIN"),
    "AVG({0})": ("AVERAGE",),
    "MIN({0})": ("MINIMUM",),
    "MAX({0})": ("MAXIMUM",),
    "SUM({0})": ("TOTAL",),
    "EXP(AVG(LN({0})))": ("GEOMEAN", "GEOMETRIC_MEAN"),
    "STDDEV({0})": ("STDEV",),
    "STDDEV_POP({0})": ("STDEVP", "STDEVPOP"),
    "VAR_SAMP({0})": ("VAR", "VARIANCE_SAMP"),
    "VAR_POP({0})": ("VARP", "VARIANCE_POP"),
    "BIT_AND({0})": ("BIT_AND_AGG", "BITWISE_AND_AGG", "BITAND_AGG"),
    "BIT_OR({0})": ("BIT_OR_AGG", "BITWISE_OR_AGG", "BITOR_AGG"),
    "BIT_XOR({0})": ("BIT_XOR_AGG", "BITWISE_XOR_AGG", "BITXOR_AGG"),
    "BOOL_AND({0})": ("BOOLAND_AGG", "LOGICAL_AND"),
    "BOOL_OR({0})": ("BOOLOR_AGG", "LOGICAL_OR"),
    "POWER({0}, 2)": ("SQUARE",),
    "1 / TAN({0})": ("COT",),
    "TRUNC({0}, {1})": ("ROUNDDOWN",),
    "MOD({0}, {1})": ("REMAINDER", "MODULO"),
    "{0} DIV {1}": ("DIV", "INTDIV", "QUOTIENT"),
    "CAST({0} AS STRING) = 'NaN'": ("ISNAN", "IS_NAN"),
}  # fmt: skip
"""What to write with the arguments of a call, `{all}` of them or one by one, and the functions it is for."""

REWRITES: Final[dict[str, str]] = {
    **{name: f"CAST({{0}} AS {dtype})" for dtype, names in _CASTS.items() for name in names},
    **{name: written for written, names in _RENAMED.items() for name in names},
}
"""Functions that are refused, and what to write with their arguments."""

UNLIKE: Final = frozenset(
    {
        *("ARRAY_APPEND", "ARRAY_CAT", "ARRAY_CONCAT", "ARRAY_EXCEPT"),
        *("ARRAY_INTERSECT", "ARRAY_PREPEND", "ARRAY_REMOVE", "ARRAY_REVERSE"),
        *("ARRAY_SLICE", "ARRAY_SUM", "ARRAY_UNION", "BIT_LENGTH"),
        *("ENCODE", "ISINF", "JSON_ARRAY", "JSON_ARRAY_LENGTH"),
        *("JSON_OBJECT", "LENGTHB", "MAX_VALUE", "MIN_VALUE"),
        *("NTH_VALUE", "SUBSTRB", "URL_DECODE", "URL_ENCODE"),
    }
)
"""Functions of other systems that are like none of ours, however close their names are."""
