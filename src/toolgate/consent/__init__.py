"""Consent: durable questions to humans about one digest, and grants that answer questions of one kind."""
