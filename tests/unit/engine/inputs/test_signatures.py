"""Signatures of rows, by the examples that those who send webhooks have published."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from headrace.engine.inputs.signatures import TOLERANCE, Signature
from headrace.errors import UserError

SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554"
    b"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

PUBLISHED = {
    "GitHub, Validating webhook deliveries": (
        *("X-Hub-Signature-256", "It's a Secret to Everybody", b"Hello, World!", 0),
        {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
    ),
    "Slack, Verifying requests": (
        *("X-Slack-Signature", "8f742231b10e8888abcd99yyyzzz85a5", SLACK_BODY, 1531420618),
        {
            "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
            "x-slack-request-timestamp": "1531420618",
        },
    ),
    "Standard Webhooks, Svix's example": (
        *("webhook-signature", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}', 1614265330),
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
    ),
}


@pytest.mark.parametrize("example", PUBLISHED)
def test_published_examples(example: str) -> None:
    header, secret, body, now, headers = PUBLISHED[example]
    signature = Signature.of({"signature": header, "secret": secret})
    assert signature is not None
    assert secret not in repr(signature)
    assert signature.holds(headers, body, now)
    assert not signature.holds(headers, body + b" ", now)
    assert not signature.holds({}, body, now)
    assert not Signature(signature.header, "another").holds(headers, body, now)
    signed_at = "timestamp" in " ".join(headers)
    for later in (now + TOLERANCE + 1, now - TOLERANCE - 1):
        assert signature.holds(headers, body, later) != signed_at


def test_a_body_for_stripe_is_signed_with_its_time() -> None:
    """By its documentation: the HMAC of the time, a dot and the body; only v1 is a signature."""
    signature = Signature("stripe-signature", "whsec_test")
    body, other = b'{"id": "evt_1"}', "00" * 32
    right = hmac.new(b"whsec_test", b"1000." + body, hashlib.sha256).hexdigest()
    assert signature.holds({"stripe-signature": f"t=1000,v1={other},v1={right}"}, body, 1000)
    for sent in (f"t=1001,v1={right}", f"t=1000,v0={right}", f"t=-1000,v1={right}", f"v1={right}", "t,v1"):
        assert not signature.holds({"stripe-signature": sent}, body, 1000), sent


def test_both_options_are_needed() -> None:
    assert Signature.of({}) is None
    for options in ({"signature": "X-A"}, {"secret": "s"}, {"signature": "X A", "secret": "s"}):
        with pytest.raises(UserError, match=r"signed in a header|cannot be a header"):
            Signature.of(options)
