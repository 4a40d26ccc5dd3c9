"""Policy: phases, personas, rules and limits give one Decision per call. No I/O; imports only core."""
