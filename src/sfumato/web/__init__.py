"""Door two: a page on this machine. It computes and decides nothing; it asks the rooms below.

The server holds plans as text and what came of them as JSON. Tables live in processes of their own
(`workers`), so that the server needs neither numba nor SciPy, and one that dies takes nothing along.
"""
