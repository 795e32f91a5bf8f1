"""The one way out: read, protect, postprocess, judge, shuffle, and only then write, with a trail."""
