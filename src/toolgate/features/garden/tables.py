"""Tables of the garden: one row for each version of each file, made from the ledger's events.

They can be made again from the ledger as long as it has the events and the images are kept; so nothing is believed
because it stands here. On PostgreSQL each user reads the own rows and nobody but the service writes.
"""

from __future__ import annotations

from toolgate.storage.tables import Migration

_EDITS = """
CREATE TABLE garden_edits (
    path TEXT NOT NULL, number {integer} NOT NULL, event {integer} NOT NULL, user_id TEXT NOT NULL, at {integer} NOT NULL,
    call TEXT NOT NULL, persona TEXT NOT NULL, tool TEXT NOT NULL, conversation TEXT NOT NULL, op TEXT NOT NULL,
    section_anchor TEXT NOT NULL, rationale TEXT NOT NULL, override_rationale TEXT NOT NULL, evidence_refs TEXT NOT NULL,
    before_hash TEXT NOT NULL, after_hash TEXT NOT NULL, trust TEXT NOT NULL, status TEXT NOT NULL, lint TEXT NOT NULL,
    line_hash TEXT NOT NULL, section_hashes TEXT NOT NULL, integrity_salt_version {integer} NOT NULL, origins TEXT NOT NULL,
    PRIMARY KEY (path, number), UNIQUE (path, event)
);
CREATE TABLE garden_versions (
    user_id TEXT NOT NULL, hash TEXT NOT NULL, content {bytes} NOT NULL, PRIMARY KEY (user_id, hash)
);
CREATE TABLE garden_seen (id {integer} PRIMARY KEY, event {integer} NOT NULL);
"""
_OWNERS = """
ALTER TABLE garden_edits ENABLE ROW LEVEL SECURITY;
ALTER TABLE garden_versions ENABLE ROW LEVEL SECURITY;
CREATE POLICY garden_owner ON garden_edits FOR SELECT
    USING (user_id = current_user);
CREATE POLICY garden_owner ON garden_versions FOR SELECT
    USING (user_id = current_user);
"""
"""Whoever owns the tables, the service, is not bound by the policies. Any other role reads the rows of the user that it is
named after, which it cannot choose itself, and has no policy that lets it write."""

_SEALED = """
DELETE FROM garden_edits;
DELETE FROM garden_seen;
ALTER TABLE garden_edits ADD COLUMN seal TEXT NOT NULL DEFAULT '';
CREATE TABLE garden_lint (
    path TEXT PRIMARY KEY, user_id TEXT NOT NULL, status TEXT NOT NULL, hash TEXT NOT NULL, findings TEXT NOT NULL,
    seal TEXT NOT NULL
);
"""
"""Rows without a seal are made again from the ledger. `garden_lint` has what lint found in each file, by its hash."""
_LINT_OWNERS = """
ALTER TABLE garden_lint ENABLE ROW LEVEL SECURITY;
CREATE POLICY garden_owner ON garden_lint FOR SELECT
    USING (user_id = current_user);
"""

MIGRATIONS = (
    Migration(
        _EDITS.format(integer="INTEGER", bytes="BLOB"),
        _EDITS.format(integer="BIGINT", bytes="BYTEA") + _OWNERS,
    ),
    Migration(_SEALED, _SEALED + _LINT_OWNERS),
)
