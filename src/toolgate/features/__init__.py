"""The features: everything a project can do, each in a folder of its own."""
