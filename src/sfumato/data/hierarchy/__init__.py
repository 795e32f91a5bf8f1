"""Hierarchies: what they are, how they are built from rules, and how they are grown from the data."""
