"""Durable jobs and schedules, on DBOS. What a job does are calls through the gate."""
