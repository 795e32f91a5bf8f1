"""Protect: one file per family. A class with a ``name`` in a file here is a method; nothing else to do."""
