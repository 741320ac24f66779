"""What is said of a PER that does not fit its stream."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import LanguageError


@pytest.mark.parametrize(
    ("clauses", "message", "hint"),
    [
        ("PER b", "one b that sends nothing any more would hold", "PER b OF (...)"),
        ("PER c IDLE AFTER 5 SECONDS", "s has no column c", "(a BIGINT, b STRING, ts TIMESTAMP)"),
        ("PER ts IDLE AFTER 5 SECONDS", "and ts is a TIMESTAMP", "name the column"),
        ("PER b OF (1)", "1 is not a value of b, which is a STRING", "OF ('a', 'b')"),
        ("PER a OF ('x')", "'x' is not a value of a, which is a BIGINT", "OF (1, 2)"),
        ("PER a OF (99999999999999999999)", "99999999999999999999 is not a value of a", "OF (1, 2)"),
        ("PER b OF ('x') LATENCY 1 SECOND", "PER and LATENCY cannot be combined", "DISORDER 5 SECONDS"),
        ("PER b OF ('x') DISORDER 5 ROWS", "PER and DISORDER n ROWS cannot", "DISORDER 5 SECONDS"),
        ("PER b OF ('x') HEARTBEATS FROM ts", "PER and HEARTBEATS FROM cannot", "DISORDER 5 SECONDS"),
        ("PER b OF ('x') ESTIMATED", "PER and an estimated disorder cannot", "DISORDER 5 SECONDS"),
    ],
)
def test_what_does_not_fit_is_refused(clauses: str, message: str, hint: str) -> None:
    created = "CREATE STREAM s (a BIGINT, b STRING, ts TIMESTAMP) FROM push TIMESTAMP BY ts"
    with hr.connect(runner="inline") as db:
        with pytest.raises(LanguageError) as raised:
            db.execute(f"{created} {clauses}")
        assert message in raised.value.message
        assert hint in (raised.value.hint or "")
        assert raised.value.position is not None
        assert raised.value.position.column == len(created) + 6
        # The same where the stream exists already.
        db.execute(created)
        with pytest.raises(LanguageError):
            db.execute(f"ALTER STREAM s {clauses}")


@pytest.mark.parametrize("timestamp", ["ts", "PER"])
def test_clauses_come_in_any_order(timestamp: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (a BIGINT, {timestamp} BIGINT) FROM push TIMESTAMP BY {timestamp} "
            "PER a OF (-1, 2, 2) WAIT 1 MINUTE DISORDER 3 IDLE AFTER 5 SECONDS"
        )
        db.execute(
            f"CREATE STREAM r (a BIGINT, {timestamp} BIGINT) FROM push TIMESTAMP BY {timestamp} "
            "IDLE AFTER 5 SECONDS DISORDER 3 PER a WAIT 1 MINUTE"
        )
