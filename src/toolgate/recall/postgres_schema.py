"""PostgreSQL schema of recall: the knowledge table with words and vectors, its indexes, its row-level security, and
`hybrid_search` for those who ask in SQL.

`content_tsvector` is stemmed without stop words being lost, so that a query of stop words alone finds something. The
parts that need pgvector are made when an embedder first needs them: without the extension, words are still searched.
"""

from __future__ import annotations

SCHEMA = """
CREATE TEXT SEARCH DICTIONARY toolgate_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION toolgate (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION toolgate ALTER MAPPING FOR asciiword, word, numword, asciihword, hword, numhword,
    hword_asciipart, hword_part, hword_numpart WITH toolgate_stem;
CREATE TABLE tools_knowledge (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    number BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    scope TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    part INTEGER NOT NULL,
    topic TEXT NOT NULL GENERATED ALWAYS AS (coalesce(tags[1], '')) STORED,
    content TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    item_hash TEXT NOT NULL,
    terms TEXT NOT NULL,
    length INTEGER NOT NULL,
    content_tsvector TSVECTOR GENERATED ALWAYS AS (to_tsvector('toolgate'::regconfig, terms)) STORED,
    tags TEXT[] NOT NULL DEFAULT '{}',
    metadata JSONB NOT NULL DEFAULT '{}'::jsonb,
    at TIMESTAMPTZ,
    period TEXT NOT NULL DEFAULT '',
    conversation TEXT NOT NULL DEFAULT '',
    place BIGINT,
    model TEXT NOT NULL DEFAULT '',
    dimension INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    UNIQUE (scope, entity_id, part));
CREATE INDEX idx_tools_knowledge_entity ON tools_knowledge (scope, entity_type, entity_id);
CREATE INDEX idx_tools_knowledge_topic ON tools_knowledge (scope, topic);
CREATE INDEX idx_tools_knowledge_fts ON tools_knowledge USING GIN (content_tsvector);
CREATE INDEX idx_tools_knowledge_hash ON tools_knowledge (scope, content_hash);
CREATE INDEX idx_tools_knowledge_place ON tools_knowledge (scope, conversation, place) WHERE conversation <> '';
CREATE FUNCTION update_updated_at_column() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at = now();
    RETURN NEW;
END $$;
CREATE TRIGGER update_tools_knowledge_updated_at BEFORE UPDATE ON tools_knowledge
    FOR EACH ROW EXECUTE FUNCTION update_updated_at_column();
ALTER TABLE tools_knowledge ENABLE ROW LEVEL SECURITY;
ALTER TABLE tools_knowledge FORCE ROW LEVEL SECURITY;
CREATE POLICY one_scope ON tools_knowledge USING (
    scope = current_setting('toolgate.scope', true) OR current_setting('toolgate.every_scope', true) = 'yes');
CREATE TABLE recall_speakers (scope TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (scope, name));
CREATE TABLE knowledge_usage_stats (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(), scope TEXT NOT NULL, results_count INTEGER NOT NULL,
    avg_score DOUBLE PRECISION, execution_time_ms DOUBLE PRECISION, degraded BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now());
CREATE INDEX idx_knowledge_usage_entity ON knowledge_usage_stats (scope);
CREATE INDEX idx_knowledge_usage_created ON knowledge_usage_stats (created_at DESC);
"""
VECTORS = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    "ALTER TABLE tools_knowledge ADD COLUMN IF NOT EXISTS embedding vector",
)
INDEX = """CREATE INDEX IF NOT EXISTS idx_tools_knowledge_embedding_{0} ON tools_knowledge
    USING hnsw ((embedding::vector({0})) vector_cosine_ops) WHERE dimension = {0}"""
HYBRID_SEARCH = """
CREATE OR REPLACE FUNCTION hybrid_search(
    query_text TEXT, query_embedding vector, p_entity_type TEXT DEFAULT NULL, p_entity_id TEXT DEFAULT NULL,
    p_topic TEXT DEFAULT NULL, semantic_weight FLOAT DEFAULT 0.5, fts_weight FLOAT DEFAULT 0.5,
    match_count INT DEFAULT 5, min_similarity FLOAT DEFAULT 0.0
) RETURNS TABLE (
    id UUID, entity_type TEXT, entity_id TEXT, topic TEXT, content TEXT, metadata JSONB, semantic_score FLOAT,
    fts_score FLOAT, combined_score FLOAT, created_at TIMESTAMPTZ
) LANGUAGE sql STABLE AS $$
    WITH asked AS (
        SELECT string_agg(quote_literal(lexeme), ' | ')::tsquery AS words
        FROM unnest(tsvector_to_array(to_tsvector('toolgate', query_text))) AS lexeme
    ), scored AS (
        SELECT k.*, (1 - (k.embedding <=> query_embedding))::FLOAT AS semantic,
            coalesce(ts_rank(k.content_tsvector, asked.words, 1 | 32), 0)::FLOAT AS fts
        FROM tools_knowledge AS k, asked
        WHERE (p_entity_type IS NULL OR k.entity_type = p_entity_type)
            AND (p_entity_id IS NULL OR k.entity_id = p_entity_id)
            AND (p_topic IS NULL OR k.topic = p_topic)
            AND (k.dimension = 0 OR k.dimension = vector_dims(query_embedding))
    )
    SELECT id, entity_type, entity_id, topic, content, metadata, semantic, fts,
        (semantic_weight * coalesce(semantic, 0) + fts_weight * fts)::FLOAT, created_at
    FROM scored
    WHERE semantic_weight * coalesce(semantic, 0) + fts_weight * fts >= min_similarity
    ORDER BY semantic_weight * coalesce(semantic, 0) + fts_weight * fts DESC, number
    LIMIT match_count
$$
"""
