"""The ledger: an append-only, keyed hash chain of events, and everything that can be proven from it."""
