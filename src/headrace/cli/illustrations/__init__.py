"""Commands that illustrate: NEXMark, heartbeats of simulated sources, the consistency spectrum."""
