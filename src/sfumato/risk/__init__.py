"""How safe: one file per family. A class with a ``name`` here is a measure; nothing else to do."""
