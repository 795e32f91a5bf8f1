"""One word in many notations: ``EntropyLDiversity``, ``entropy l-diversity``, ``(α, k)-anonymity``."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

#: Where one word ends and the next begins in `EntropyLDiversity`, `addNoise` and `suda2`.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@cache
def words_in(text: str) -> tuple[str, ...]:
    """The words of a name in whatever notation: ``EntropyLDiversity``, ``(α, k)-anonymity``, ``add_noise``.

    Case, accents, signs and the American z do not count; Greek letters are spelt.
    """
    spelt = (
        unicodedata.name(letter).rpartition(" ")[2] if "Ͱ" <= letter <= "Ͽ" and letter.isalpha() else letter
        for letter in unicodedata.normalize("NFKD", _CAMEL.sub(" ", text))
    )
    plain = "".join(letter for letter in spelt if not unicodedata.combining(letter[0])).lower()
    return tuple(re.sub(r"iz(?=[aei])", "is", word) for word in re.findall(r"[a-z0-9]+", plain))


@cache
def same_word(text: str) -> str:
    """The form in which two notations of a name are equal."""
    return "".join(words_in(text))
