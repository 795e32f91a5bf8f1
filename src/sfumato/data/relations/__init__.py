"""What a release lets people put together again: what joins records, and what tells what.

Every risk is judged on the columns that an intruder is said to know. An intruder uses whatever joins, too:
`joining` has the columns that are declared to say which records belong together, `regrouping` finds those
that do so without a word, `telling` those that give back what was changed, `kept` what a method leaves as it
was between columns, `readings` what suppressed cells and numbers a hair apart are read for, and `related`
columns that tell the same story. Measures, notes, methods and `inspect`
ask here and nowhere else.
"""
