"""Other MCP servers behind the gate. Their SDK is imported only when a server is needed."""
