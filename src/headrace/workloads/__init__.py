"""Workloads: schema, generator and queries of well-known benchmarks."""
