"""What to do: steps, recipes of them, plans around a recipe, and profiles that ask something of it."""
