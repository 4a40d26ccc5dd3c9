-- What programs were run and how it went. Not under the chain: rows are trimmed by age and number.
CREATE TABLE code_executions (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, created_at BIGINT NOT NULL,
  call TEXT NOT NULL, persona TEXT NOT NULL, tool TEXT NOT NULL, language TEXT NOT NULL, session_id TEXT NOT NULL,
  code TEXT NOT NULL, stdout TEXT NOT NULL, stderr TEXT NOT NULL, exit_code BIGINT, duration_ms DOUBLE PRECISION NOT NULL,
  success BOOLEAN NOT NULL, limit_hit TEXT NOT NULL, error_category TEXT NOT NULL, trigger_message TEXT NOT NULL,
  llm_reasoning TEXT NOT NULL
);
CREATE INDEX code_executions_by_time ON code_executions (created_at);
CREATE INDEX code_executions_failed ON code_executions (seq) WHERE NOT success;
