"""How safe: one file per family. A class with a ``name`` in a file here is a measure; nothing else to do."""
