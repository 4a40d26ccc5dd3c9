-- The whole bodies of events whose rows hold only their beginning and their hash. Not under the chain: they are let go.
CREATE TABLE attachments (
  seq INTEGER PRIMARY KEY, persona TEXT NOT NULL, expires INTEGER NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;
