-- The journal, its head, and the projections of it.
CREATE TABLE journal (
  seq BIGINT PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL, call TEXT NOT NULL, persona TEXT NOT NULL,
  tool TEXT NOT NULL, conversation TEXT NOT NULL, ref TEXT NOT NULL, claim TEXT NOT NULL, key BIGINT NOT NULL,
  body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL, mac TEXT NOT NULL
);
CREATE INDEX journal_by_call ON journal (call) WHERE call <> '';
CREATE INDEX journal_by_ref ON journal (ref) WHERE ref <> '';
CREATE INDEX journal_by_claim ON journal (claim) WHERE claim <> '';
CREATE INDEX journal_by_time ON journal (at);
CREATE FUNCTION journal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'the journal is append-only'; END $$;
CREATE TRIGGER journal_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
  FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only();
-- ALWAYS: replication roles do not get around it either.
ALTER TABLE journal ENABLE ALWAYS TRIGGER journal_no_change;
CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1), seq BIGINT NOT NULL, at BIGINT NOT NULL, key BIGINT NOT NULL,
  hash TEXT NOT NULL, mac TEXT NOT NULL, live TEXT NOT NULL
) WITH (fillfactor = 10);
-- There from the start: a row is what writers lock.
INSERT INTO head (id, seq, at, key, hash, mac, live) VALUES (1, 0, 0, 0, repeat('0', 64), '', '');
CREATE TABLE questions (id TEXT PRIMARY KEY, seq BIGINT NOT NULL, state TEXT NOT NULL, expires BIGINT NOT NULL);
CREATE TABLE grants (id TEXT PRIMARY KEY, seq BIGINT NOT NULL, uses BIGINT NOT NULL, expires BIGINT NOT NULL);
CREATE TABLE pauses (persona TEXT PRIMARY KEY, seq BIGINT NOT NULL);
CREATE TABLE doubts (call TEXT PRIMARY KEY, seq BIGINT NOT NULL);
CREATE TABLE claims (
  scope TEXT PRIMARY KEY, call TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL, seq BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
