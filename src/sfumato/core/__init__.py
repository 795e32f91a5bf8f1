"""The contract: what a parameter, a method, a measure, a release and a run are."""
