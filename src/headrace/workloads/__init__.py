"""Workloads: well-known benchmarks, with their queries, and simulated sources that send at odd times."""
