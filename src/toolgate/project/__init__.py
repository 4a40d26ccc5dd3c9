"""A project on disk: its configuration, who trusts it, how it is opened, and what is kept about it."""
