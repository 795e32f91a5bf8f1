"""Choose: evaluate a recipe, bring methods to one target or the same requirements, and compare them there."""
