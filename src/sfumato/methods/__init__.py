"""Protect: one file per family. A class with a ``name`` here is a method; nothing else to do."""
