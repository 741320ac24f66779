"""What is secret among the options of a relation or a stream is found, and hidden in texts."""

from __future__ import annotations

import pytest

from headrace.engine.access.secrets import hidden, open_options, secret_option


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("password", "sesame", None),
        ("kafka.sasl.jaas.config", "sesame", None),
        ("url", "jdbc:postgresql://host/db?user=ada&password=sesame&ssl=true", "ada&password=***&ssl=true"),
        ("url", "jdbc:sqlserver://host;user=ada;Password=sesame;encrypt=true", "Password=***;encrypt=true"),
        ("url", "mongodb://ada:sesame@host/db", "//ada:***@host"),
        ("url", "jdbc:oracle:thin:scott/sesame@//host:1521/db", "scott/***@//host"),
        ("url", "jdbc:postgresql://host:5432/sesame?user=ada", "host:5432/sesame?user=ada"),
        ("dbtable", "sesame", "sesame"),
    ],
)
def test_secrets_are_found(name: str, value: str, shown: str | None) -> None:
    options = {"dbtable": "rooms", name: value}
    is_secret = shown is None or "***" in shown
    assert secret_option(options.items()) == (name if is_secret else None)
    text = hidden(f"{value} cannot be read", options)
    assert ("sesame" in text) is not is_secret
    assert (shown or "***") in text
    assert ("sesame" in str(open_options(options))) is not is_secret
