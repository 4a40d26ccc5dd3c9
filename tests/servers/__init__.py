"""Real servers for tests and benchmarks, started from wheels and gone afterwards."""
