import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.sources.text.records import (
    AFTER_QUOTE,
    ESCAPED_END,
    GOOD,
    MAX_DEPTH,
    NO_OBJECT,
    STRAY_RETURN,
    TOO_DEEP,
    UNCLOSED,
    UNUSUAL,
    csv_records,
    json_records,
)


def csv_rows(
    text: str, multiline: bool = False, escape: str = "", comment: str = ""
) -> list[tuple[str, int, int]]:
    marks = np.array([ord(one) if one else -1 for one in (",", '"', escape, comment)])
    data = text.encode()
    starts, ends, fields, states = csv_records(np.frombuffer(data, np.uint8), marks, multiline)
    return [
        (data[start:end].decode(), number, state)
        for start, end, number, state in zip(starts, ends, fields, states, strict=True)
    ]


def json_rows(text: str) -> list[tuple[str, int]]:
    data = text.encode()
    starts, ends, states = json_records(np.frombuffer(data, np.uint8))
    return [(data[start:end].decode(), state) for start, end, state in zip(starts, ends, states, strict=True)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", []),
        ("\n\r\n\n", []),
        ("a,b", [("a,b", 2, GOOD)]),
        ("a,b\r\nc\r", [("a,b", 2, GOOD), ("c", 1, GOOD)]),
        (",\n", [(",", 2, GOOD)]),
        ('"a,b",c\n', [('"a,b",c', 2, GOOD)]),
        ('"a""b,",c\n', [('"a""b,",c', 2, GOOD)]),
        ('a"b,c"\n', [('a"b,c"', 2, GOOD)]),
        ('"a"b"c,d\n"e"\n', [('"a"b"c,d', 2, AFTER_QUOTE), ('"e"', 1, GOOD)]),
        ('x,"a"b\n', [('x,"a"b', 2, AFTER_QUOTE)]),
        ('""a""\n', [('""a""', 1, AFTER_QUOTE)]),
        ('"a" ,"b"\t\r\n', [('"a" ,"b"\t', 2, GOOD)]),
        ('a,"b\nc,d\n', [('a,"b', 2, UNCLOSED), ("c,d", 2, GOOD)]),
        ('"\n"\n', [('"', 1, UNCLOSED), ('"', 1, UNCLOSED)]),
        ("a\rb,c\nd\n", [("a\rb,c", 2, STRAY_RETURN), ("d", 1, GOOD)]),
        ('"a\rb"\n', [('"a\rb"', 1, GOOD)]),
    ],
)
def test_csv_rows(text: str, rows: list[tuple[str, int, int]]) -> None:
    assert csv_rows(text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('"a\\"b,",c\n', [('"a\\"b,",c', 2, GOOD)]),
        ("a\\,b,c\n", [("a\\,b,c", 2, GOOD)]),
        ("a\\\nb\n", [("a\\", 1, ESCAPED_END), ("b", 1, GOOD)]),
        ("a\\\r\nb\n", [("a\\", 1, ESCAPED_END), ("b", 1, GOOD)]),
        ('"a\\', [('"a\\', 1, ESCAPED_END)]),
        ("#a,b\nc#,d\n#", [("c#,d", 2, GOOD)]),
    ],
)
def test_csv_rows_with_escapes_and_comments(text: str, rows: list[tuple[str, int, int]]) -> None:
    assert csv_rows(text, escape="\\", comment="#") == rows


def test_csv_rows_over_several_lines() -> None:
    assert csv_rows('a,"b\nc",d\ne\n', multiline=True) == [('a,"b\nc",d', 3, GOOD), ("e", 1, GOOD)]
    assert csv_rows('a\n"b\nc\n', multiline=True) == [("a", 1, GOOD), ('"b\nc\n', 1, UNCLOSED)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", []),
        (" \n\t\r\n", []),
        ("{}", [("{}", GOOD)]),
        (' {"a": [1, {"b": "}"}]} \r\n{}\n', [('{"a": [1, {"b": "}"}]}', GOOD), ("{}", GOOD)]),
        ('{"a": "\\"}"}\n', [('{"a": "\\"}"}', GOOD)]),
        ('{"a": "\\\\"}\n', [('{"a": "\\\\"}', GOOD)]),
        ("null\n", [("null", NO_OBJECT)]),
        ("[1]\n", [("[1]", NO_OBJECT)]),
        ("{} null {}\n", [("{} null {}", NO_OBJECT)]),
        ("{}{}\n", [("{}{}", NO_OBJECT)]),
        ('{"a": 1\n}\n', [('{"a": 1', UNCLOSED), ("}", NO_OBJECT)]),
        ('{"a": "b\n{}\n', [('{"a": "b', UNCLOSED), ("{}", GOOD)]),
        ('{"a": "b\\\n{}\n', [('{"a": "b\\', UNCLOSED), ("{}", GOOD)]),
        ('{"a": 1e9, "e": true}', [('{"a": 1e9, "e": true}', GOOD)]),
        ('{"a": 1e+100}', [('{"a": 1e+100}', UNUSUAL)]),
        ('{"a": 1E100', [('{"a": 1E100', UNCLOSED)]),
        ('{"a": NaN}', [('{"a": NaN}', UNUSUAL)]),
        ('{"a": "NaN 1e100"}', [('{"a": "NaN 1e100"}', GOOD)]),
        ('{"a": -Infinity}', [('{"a": -Infinity}', UNUSUAL)]),
    ],
)
def test_json_lines(text: str, rows: list[tuple[str, int]]) -> None:
    assert json_rows(text) == rows


def test_json_lines_with_long_numbers_and_deep_nesting() -> None:
    assert json_rows('{"a": %s}' % ("9" * 299))[0][1] == GOOD
    assert json_rows('{"a": %s}' % ("9" * 300))[0][1] == UNUSUAL
    assert json_rows('{"a": "%s"}' % ("9" * 300))[0][1] == GOOD
    levels = MAX_DEPTH - 1
    assert json_rows('{"a":' + "[" * levels + "]" * levels + "}")[0][1] == GOOD
    assert json_rows('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}")[0][1] == TOO_DEEP


@given(st.text(alphabet='a,"\n\r{}[]\\ 0', max_size=40), st.booleans())
def test_no_byte_is_lost(text: str, multiline: bool) -> None:
    """Rows hold everything but line ends and blanks, in order."""
    joined = "".join(row for row, *_ in csv_rows(text, multiline))
    assert joined.replace("\r", "").replace("\n", "") == text.replace("\r", "").replace("\n", "")
    solid = "".join(row for row, _ in json_rows(text)).translate({10: None, 13: None, 32: None})
    assert solid == text.translate({10: None, 13: None, 32: None})
