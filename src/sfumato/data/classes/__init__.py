"""Who is alike: the equivalence classes of a table, exact and generalised."""
