"""Values made coarser: intervals and nodes, what they stand for, how they are made, and their text forms."""
