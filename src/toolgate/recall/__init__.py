"""Hybrid search over scoped texts: lexical and semantic, on SQLite and PostgreSQL. It knows no tools."""
