"""Delivery: what a query's epochs changed, carried to sinks outside, in order, from committed results alone.

A sink gets an epoch after its commit, so it never sees what might not have happened. The last epoch it
has taken is remembered, so that a run which is started again on a durable store continues where the sink is.
"""
