"""Durable jobs and schedules: long work that survives a crash and can be watched and cancelled."""
