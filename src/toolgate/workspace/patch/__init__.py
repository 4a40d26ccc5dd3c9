"""Unified diffs: parsed, and applied to contents that the caller hands in. No file is touched here."""

from toolgate.workspace.patch.apply import Applied, Patched, apply
from toolgate.workspace.patch.header import FilePatch, PatchHunk
from toolgate.workspace.patch.parse import parse, parse_one

__all__ = ["Applied", "FilePatch", "PatchHunk", "Patched", "apply", "parse", "parse_one"]
