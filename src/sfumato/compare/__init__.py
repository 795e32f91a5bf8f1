"""Choose: recipes and plans, trials, reaching a level, and the risk–utility map."""
