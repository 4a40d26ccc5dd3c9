"""The way out of the sandbox: an HTTP proxy that lets through what was granted, and records all that was tried."""
