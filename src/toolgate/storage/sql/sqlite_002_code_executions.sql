-- What programs were run and how it went. Not under the chain: rows are trimmed by age and number.
CREATE TABLE code_executions (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, call TEXT NOT NULL,
  persona TEXT NOT NULL, tool TEXT NOT NULL, language TEXT NOT NULL, session_id TEXT NOT NULL, code TEXT NOT NULL,
  stdout TEXT NOT NULL, stderr TEXT NOT NULL, exit_code INTEGER, duration_ms REAL NOT NULL, success INTEGER NOT NULL,
  limit_hit TEXT NOT NULL, error_category TEXT NOT NULL, trigger_message TEXT NOT NULL, llm_reasoning TEXT NOT NULL
) STRICT;
CREATE INDEX code_executions_by_time ON code_executions (created_at);
CREATE INDEX code_executions_failed ON code_executions (seq) WHERE success = 0;
