"""Secrets in statements: named, so that no text has them."""

from __future__ import annotations


class SecretName(str):
    """The name of a secret, where an option has its value: `password SECRET 'broker'`."""

    __slots__ = ()
