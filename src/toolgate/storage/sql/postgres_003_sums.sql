-- What whole blocks of events come to: a cache for `stats`, under no chain, made again where it is missing.
CREATE TABLE sums (number BIGINT PRIMARY KEY, hash TEXT NOT NULL, body TEXT NOT NULL);
