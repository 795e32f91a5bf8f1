"""Seeds with which a release may be written: a smaller one that somebody gives is guessed, and makes none."""

LARGE = 2**64
