"""What functions of texts mean for one row, in plain Python."""

from __future__ import annotations

import binascii
import hashlib
import re
import string
from collections.abc import Callable
from typing import Any, Final

from headrace.reference.casts import RowError


def _like(text: str, pattern: str, escape: str = "\\") -> bool:
    if not pattern:
        return not text
    if pattern[0] == escape:
        return text[:1] == pattern[1] and _like(text[1:], pattern[2:], escape)
    if pattern[0] == "%":
        return any(_like(text[skip:], pattern[1:], escape) for skip in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and _like(text[1:], pattern[1:], escape)


def _substring(text: str, position: int, length: int | None = None) -> str:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length is None else start + length
    return text[max(start, 0) : max(end, 0)]


_RE2: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|(?P<same>\\.|\[\^?\]?[^\]]*\])|(?P<named>\(\?<(?=\w))|\$", re.DOTALL
)


def _regex(pattern: str) -> re.Pattern[str]:
    """RE2's pattern as Python's: `$` is the end of the text, and letters and digits are those of ASCII."""

    def translated(found: re.Match[str]) -> str:
        if found["quoted"] is not None:
            return re.escape(found["quoted"])
        return found["same"] or ("(?P<" if found["named"] else r"\Z")

    return re.compile(_RE2.sub(translated, pattern), re.ASCII)


def _regexp_extract(text: str, pattern: str, group: int) -> str:
    found = _regex(pattern).search(text)
    return "" if found is None else found[group] or ""


def _split_part(text: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise RowError("SPLIT_PART counts parts from 1, or from -1 at the end")
    parts = text.split(delimiter) if delimiter else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _padded(text: str, length: int, filling: str, *, left: bool) -> str:
    """Letter by letter, until it is long enough or there is nothing to add."""
    _limited(length)
    added = ""
    while filling and len(text) + len(added) < length:
        added += filling[len(added) % len(filling)]
    return ((added + text) if left else (text + added))[: max(length, 0)]


def _limited(length: int) -> None:
    if length > 1_000_000:
        raise RowError("a text of more than 1,000,000 characters")


def _repeated(text: str, count: int) -> str:
    if text:
        _limited(min(count, 2_000_000) * len(text) if count > 0 else 0)
    return text * (max(count, 0) if text else 0)


def _located(part: str, text: str, start: int = 1) -> int:
    if not part:
        return 1 if start > 0 else 0
    places = (
        place for place in range(1, len(text) + 2) if place >= start and text[place - 1 :].startswith(part)
    )
    return next(places, 0) if start > 0 else 0


def _initcap(text: str) -> str:
    letters = [
        letter.title() if place == 0 or text[place - 1] == " " else letter.lower()
        for place, letter in enumerate(text)
    ]
    return "".join(letters)


def _translated(text: str, search: str, by: str) -> str:
    return "".join(
        letter if letter not in search else by[search.index(letter) : search.index(letter) + 1]
        for letter in text
    )


def _up_to(text: str, delimiter: str, count: int) -> str:
    """What is before the delimiter that comes as the count says, from the left or, if negative, the right."""
    if not delimiter or count == 0:
        return ""
    parts = text.split(delimiter)
    kept = parts[: max(count, 0)] if count > 0 else parts[max(len(parts) + count, 0) :]
    return delimiter.join(kept)


def _replaced(text: str, pattern: str, by: str) -> str:
    def written(found: re.Match[str]) -> str:
        return re.sub(
            r"\\(.)|\$(\d)",
            lambda part: part[1] if part[2] is None else found[int(part[2])] or "",
            by,
            flags=re.DOTALL,
        )

    return _regex(pattern).sub(written, text)


def _sha2(text: str, bits: int) -> str | None:
    names = {
        0: hashlib.sha256,
        224: hashlib.sha224,
        256: hashlib.sha256,
        384: hashlib.sha384,
        512: hashlib.sha512,
    }
    return names[bits](text.encode()).hexdigest() if bits in names else None


def _distance(left: str, right: str) -> int:
    if not left or not right:
        return len(left) + len(right)
    same = _distance(left[1:], right[1:])
    if left[0] == right[0]:
        return same
    return 1 + min(same, _distance(left[1:], right), _distance(left, right[1:]))


def _joined(separator: str | None, *texts: str | None) -> str | None:
    return None if separator is None else separator.join(text for text in texts if text is not None)


def _hexadecimal(value: int | str | bytes) -> str:
    if isinstance(value, int):
        return format(value + 2**64 if value < 0 else value, "X")
    data = value.encode() if isinstance(value, str) else value
    return "".join(f"{byte:02X}" for byte in data)


def _bytes_of(text: str) -> bytes | None:
    """Two digits to a byte, the first one alone where their number is odd; NULL for anything else."""
    if any(letter not in string.hexdigits for letter in text):
        return None
    digits = "0" * (len(text) % 2) + text
    return bytes(int(digits[place : place + 2], 16) for place in range(0, len(digits), 2))


NULL_TAKING: Final[dict[str, Callable[..., Any]]] = {"CONCAT_WS": _joined}
"""The functions that look at NULLs."""

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "LIKE": _like,
    "LENGTH": len,
    "UPPER": str.upper,
    "LOWER": str.lower,
    "TRIM": lambda text: text.strip(" "),
    "LTRIM": lambda text: text.lstrip(" "),
    "RTRIM": lambda text: text.rstrip(" "),
    "SUBSTRING": _substring,
    "CONCAT": lambda *parts: parts[0][:0].join(parts),
    "||": lambda left, right: left + right,
    "REPLACE": lambda text, search, by: text.replace(search, by) if search else text,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
    "CONTAINS": lambda text, part: part in text,
    "REGEXP_LIKE": lambda text, pattern: _regex(pattern).search(text) is not None,
    "REGEXP_EXTRACT": _regexp_extract,
    "SPLIT_PART": _split_part,
    "REVERSE": lambda text: text[::-1],
    "LEFT": lambda text, count: "".join(text[place] for place in range(min(len(text), max(count, 0)))),
    "RIGHT": lambda text, count: text[::-1][: max(count, 0)][::-1],
    "LOCATE": _located,
    "INSTR": lambda text, part: _located(part, text),
    "LPAD": lambda text, length, filling=" ": _padded(text, length, filling, left=True),
    "RPAD": lambda text, length, filling=" ": _padded(text, length, filling, left=False),
    "REPEAT": _repeated,
    "INITCAP": _initcap,
    "TRANSLATE": _translated,
    "ASCII": lambda text: ord(text[0]) if text else 0,
    "CHR": lambda code: "" if code < 0 else bytes([code % 256]).decode("latin-1"),
    "SUBSTRING_INDEX": _up_to,
    "BTRIM": lambda text, characters: text.strip(characters) if characters else text,
    "TRIM LEADING": lambda text, characters: text.lstrip(characters) if characters else text,
    "TRIM TRAILING": lambda text, characters: text.rstrip(characters) if characters else text,
    "REGEXP_REPLACE": _replaced,
    "REGEXP_COUNT": lambda text, pattern: len(_regex(pattern).findall(text)),
    "MD5": lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
    "SHA1": lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
    "SHA2": _sha2,
    "CRC32": lambda text: binascii.crc32(text.encode()),
    "LEVENSHTEIN": _distance,
    "HEX": _hexadecimal,
    "UNHEX": _bytes_of,
}
"""The others, by name; none of their arguments is NULL."""
