"""The experiments of the papers this package is built on, rerun and compared with what was printed.

A file for each paper says which work is to be done and which figures are drawn; what was printed, with its
reading and tolerance, is data in ``published``. Only public calls are used, so each file is an example too.
"""
