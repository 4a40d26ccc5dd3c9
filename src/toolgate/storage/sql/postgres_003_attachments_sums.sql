-- The whole bodies of events whose rows hold only their beginning and their hash. Not under the chain: they are let go.
CREATE TABLE attachments (
  seq BIGINT PRIMARY KEY, persona TEXT NOT NULL, expires BIGINT NOT NULL, bytes BIGINT NOT NULL, body TEXT NOT NULL
);
-- What whole blocks of events come to: a cache for `stats`, under no chain, made again where it is missing.
CREATE TABLE sums (number BIGINT PRIMARY KEY, hash TEXT NOT NULL, body TEXT NOT NULL);
