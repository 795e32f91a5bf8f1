"""Proposes what each column is, with the reason; finds names, numbers of people and related columns."""
