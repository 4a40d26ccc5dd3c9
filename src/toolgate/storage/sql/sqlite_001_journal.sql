-- The journal, its head, and the projections of it.
CREATE TABLE journal (
  seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, call TEXT NOT NULL, persona TEXT NOT NULL,
  tool TEXT NOT NULL, conversation TEXT NOT NULL, ref TEXT NOT NULL, claim TEXT NOT NULL, key INTEGER NOT NULL,
  body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL, mac TEXT NOT NULL
) STRICT;
CREATE INDEX journal_by_call ON journal (call) WHERE call <> '';
CREATE INDEX journal_by_ref ON journal (ref) WHERE ref <> '';
CREATE INDEX journal_by_claim ON journal (claim) WHERE claim <> '';
-- No index by time: events are dated in order, so a moment is found among the numbers (sqlite_sql.first_since).
CREATE TRIGGER journal_no_update BEFORE UPDATE ON journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
-- It stops INSERT OR REPLACE too, for our connections have recursive_triggers; a trigger on INSERT would cost every call.
CREATE TRIGGER journal_no_delete BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, at INTEGER NOT NULL, key INTEGER NOT NULL,
  hash TEXT NOT NULL, mac TEXT NOT NULL, live TEXT NOT NULL
) STRICT;
INSERT INTO head VALUES (1, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000', '', '');
CREATE TABLE questions (
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL, expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE grants (
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, uses INTEGER NOT NULL, expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE pauses (persona TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE doubts (call TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE claims (
  scope TEXT PRIMARY KEY, call TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL, seq INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
