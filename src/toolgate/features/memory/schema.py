"""Tables of the memory. Every write is one statement: history and links follow by triggers, in the same transaction.

`memory_items` holds each item as it is now, `memory_history` the versions before, `memory_links` what supersedes or
contradicts what. `indexed` is the version that the search index has: another one than `version` means that the index
is to be brought up to date, by whoever comes next. `memory_spending` is what models used for summaries, day by day.
"""

from __future__ import annotations

from toolgate.storage.tables import Migration

COLUMNS = (
    "id", "scope", "version", "state", "store", "type", "content", "digest", "subject", "tags", "priority", "period",
    "conversation", "place", "at", "created_at", "changed_at", "persona", "call", "op", "reason", "evidence", "trust", "method",
    "flags", "valid_from", "valid_to", "expires_at", "supersedes", "contradicts", "sources",
)  # fmt: skip
_ITEM = """
    scope TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, store TEXT NOT NULL, type TEXT NOT NULL,
    content TEXT NOT NULL, digest TEXT NOT NULL, subject TEXT NOT NULL, tags TEXT NOT NULL, priority INTEGER,
    period TEXT NOT NULL, conversation TEXT NOT NULL, place INTEGER, at BIGINT NOT NULL, created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL, persona TEXT NOT NULL, call TEXT NOT NULL, op TEXT NOT NULL, reason TEXT NOT NULL,
    evidence TEXT NOT NULL, trust TEXT NOT NULL, method TEXT NOT NULL, flags TEXT NOT NULL, valid_from BIGINT,
    valid_to BIGINT, expires_at BIGINT, supersedes TEXT NOT NULL, contradicts TEXT NOT NULL, sources TEXT NOT NULL"""
_TABLES = f"""
CREATE TABLE memory_items (id TEXT PRIMARY KEY, {_ITEM}, indexed INTEGER NOT NULL DEFAULT 0);
CREATE INDEX memory_items_scope ON memory_items (scope, state, at);
CREATE INDEX memory_items_subject ON memory_items (scope, subject) WHERE subject <> '';
CREATE INDEX memory_items_call ON memory_items (call);
CREATE INDEX memory_items_talk ON memory_items (scope, conversation, place);
CREATE INDEX memory_items_unindexed ON memory_items (id) WHERE indexed <> version;
CREATE UNIQUE INDEX memory_items_once ON memory_items (scope, store, type, period, conversation, digest)
    WHERE state = 'kept';
CREATE TABLE memory_history (id TEXT NOT NULL, {_ITEM}, PRIMARY KEY (id, version));
CREATE INDEX memory_history_call ON memory_history (call);
CREATE TABLE memory_links (source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL,
    PRIMARY KEY (source, kind, target));
CREATE INDEX memory_links_target ON memory_links (target);
CREATE TABLE memory_usage (id TEXT NOT NULL, conversation TEXT NOT NULL, recalls BIGINT NOT NULL, last_at BIGINT NOT NULL,
    PRIMARY KEY (id, conversation));
CREATE INDEX memory_usage_talk ON memory_usage (conversation, last_at);
CREATE TABLE memory_sessions (id TEXT PRIMARY KEY, scope TEXT NOT NULL, conversation TEXT NOT NULL, name TEXT NOT NULL,
    began_at BIGINT NOT NULL, ended_at BIGINT, call TEXT NOT NULL);
CREATE UNIQUE INDEX memory_sessions_open ON memory_sessions (scope, conversation) WHERE ended_at IS NULL;
CREATE TABLE knowledge_files (folder TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL, kind TEXT NOT NULL,
    pieces INTEGER NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (folder, path));
CREATE TABLE knowledge_pieces (id TEXT PRIMARY KEY, folder TEXT NOT NULL, path TEXT NOT NULL, number INTEGER NOT NULL,
    kind TEXT NOT NULL, heading TEXT NOT NULL, content TEXT NOT NULL);
CREATE INDEX knowledge_pieces_file ON knowledge_pieces (folder, path);
"""
_OLD = ", ".join(f"OLD.{name}" for name in COLUMNS)
_LINK = (
    "INSERT INTO memory_links SELECT DISTINCT NEW.id, '{kind}', one.value FROM json_each(NEW.{kind}) AS one;"
)
_RELINK = " ".join(_LINK.format(kind=kind) for kind in ("supersedes", "contradicts", "sources"))
_SQLITE = f"""
CREATE TRIGGER memory_link AFTER INSERT ON memory_items BEGIN {_RELINK} END;
CREATE TRIGGER memory_relink AFTER UPDATE OF version ON memory_items BEGIN
    DELETE FROM memory_links WHERE source = NEW.id; {_RELINK} END;
CREATE TRIGGER memory_keep AFTER UPDATE OF version ON memory_items WHEN NEW.state <> 'purged' BEGIN
    INSERT INTO memory_history ({", ".join(COLUMNS)}) VALUES ({_OLD}); END;
CREATE TRIGGER memory_purge AFTER UPDATE OF version ON memory_items WHEN NEW.state = 'purged' BEGIN
    DELETE FROM memory_history WHERE id = NEW.id; END;
"""
_PG_LINK = """INSERT INTO memory_links
        SELECT DISTINCT NEW.id, '{kind}', jsonb_array_elements_text(NEW.{kind}::jsonb);"""
_POSTGRES = f"""
CREATE FUNCTION memory_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.version = OLD.version THEN RETURN NULL; END IF;
        DELETE FROM memory_links WHERE source = NEW.id;
        IF NEW.state = 'purged' THEN
            DELETE FROM memory_history WHERE id = NEW.id;
        ELSE
            INSERT INTO memory_history ({", ".join(COLUMNS)}) VALUES ({_OLD});
        END IF;
    END IF;
    {_PG_LINK.format(kind="supersedes")}
    {_PG_LINK.format(kind="contradicts")}
    {_PG_LINK.format(kind="sources")}
    RETURN NULL;
END $body$;
CREATE TRIGGER memory_follow AFTER INSERT OR UPDATE ON memory_items FOR EACH ROW EXECUTE FUNCTION memory_follow();
"""
_SPENDING = """
CREATE TABLE memory_spending (day TEXT PRIMARY KEY, asks BIGINT NOT NULL, tokens BIGINT NOT NULL,
    usd DOUBLE PRECISION NOT NULL);
"""
_WRITTEN = """
CREATE INDEX memory_items_written ON memory_items (persona, changed_at);
CREATE INDEX memory_history_written ON memory_history (persona, changed_at);
"""
"""By which it is found how much a persona wrote in the last minute."""
MIGRATIONS = (
    Migration(_TABLES + _SQLITE, _TABLES + _POSTGRES),
    Migration(_SPENDING, _SPENDING),
    Migration(_WRITTEN, _WRITTEN),
)
