"""How global recoding finds its levels: the search, who judges a node of the lattice, and what it costs."""
