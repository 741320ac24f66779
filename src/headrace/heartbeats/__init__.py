"""Heartbeat generation: what a stream promises about its later elements."""
