-- The whole bodies of events whose rows hold only their beginning and their hash. Not under the chain: they are let go.
CREATE TABLE attachments (
  seq INTEGER PRIMARY KEY, persona TEXT NOT NULL, expires INTEGER NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;
-- What whole blocks of events come to: a cache for `stats`, under no chain, made again where it is missing.
CREATE TABLE sums (number INTEGER PRIMARY KEY, hash TEXT NOT NULL, body TEXT NOT NULL) STRICT;
