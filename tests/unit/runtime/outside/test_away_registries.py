"""A registry that is away is asked again: no message is a dead letter for that."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from headrace.errors import AwayError
from headrace.runtime.outside.patience import patient
from headrace.runtime.sources.messages.registry import UnusableError, registered
from toxic_peers import MOODS, ToxicSite, toxic_site


@pytest.fixture
def site() -> Iterator[ToxicSite]:
    with toxic_site(json.dumps({"schema": "the schema"}).encode()) as found:
        yield found


@pytest.mark.parametrize("mood", MOODS)
def test_a_registry_that_is_not_well_is_away(site: ToxicSite, mood: str) -> None:
    site.mood = mood
    with pytest.raises(AwayError):
        registered(site.url, 1, "AVRO")
    site.mood = "well"
    assert registered(site.url, 1, "AVRO") == "the schema"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b"", b'{"schema'])
def test_an_answer_that_is_no_schema_is_not_one_of_the_registry(site: ToxicSite, body: bytes) -> None:
    site.body = body
    with pytest.raises(AwayError):
        registered(site.url, 1, "AVRO")


def test_a_schema_is_unknown_once_the_registry_has_said_so_for_a_while(site: ToxicSite) -> None:
    site.mood, site.body = "missing", b""
    site.refusal = json.dumps({"error_code": 40403, "message": "Schema not found"}).encode()
    with patient(lag=60.0), pytest.raises(AwayError):
        registered(site.url, 7, "AVRO")
    with patient(lag=0.0), pytest.raises(UnusableError, match="no schema 7"):
        registered(site.url, 7, "AVRO")
