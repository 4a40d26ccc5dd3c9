-- How many questions stand and what they add up to, so that an opening need not read them. Empty in heads of earlier versions.
ALTER TABLE head ADD COLUMN questions TEXT NOT NULL DEFAULT '';
