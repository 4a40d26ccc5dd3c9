"""The tools that come with toolgate, made from services handed in."""
