"""The content scan: what is about to be written, searched for secrets, malicious payloads and hidden characters."""

from toolgate.secrets.scan.scanner import ContentScanner

__all__ = ["ContentScanner"]
