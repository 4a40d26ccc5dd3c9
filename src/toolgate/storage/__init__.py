"""The database: SQLite (default), PostgreSQL and memory behind one interface. It stores; it decides nothing."""
