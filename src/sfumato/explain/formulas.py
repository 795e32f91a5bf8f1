"""Formulas for a screen: LaTeX, as docstrings have it, in letters and signs that a terminal can show."""

from __future__ import annotations

import re

_SIGNS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈", "equiv": "≡",
    "sim": "~", "in": "∈", "notin": "∉", "subseteq": "⊆", "subset": "⊂", "cap": "∩", "cup": "∪",
    "setminus": "∖", "exists": "∃", "forall": "∀", "infty": "∞", "cdot": "·", "times": "×", "pm": "±",
    "to": "→", "mapsto": "↦", "sum": "Σ", "prod": "Π", "int": "∫", "partial": "∂", "ldots": "…",
    "dots": "…", "cdots": "…", "mid": "|", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉",
    "langle": "⟨", "rangle": "⟩", "ell": "l", "quad": "  ", "qquad": "  ", "top": "ᵀ", "prime": "'",
    "circ": "∘", "wedge": "∧", "vee": "∨", "emptyset": "∅", "alpha": "α", "beta": "β", "gamma": "γ",
    "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ",
    "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
    "bigcap": "∩", "bigcup": "∪",
}  # fmt: skip

_GROUP = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"  # braces within braces within braces
_FRACTION = re.compile(r"\\[dt]?frac\s*" + _GROUP + r"\s*" + _GROUP)
_SHORT_FRACTION = re.compile(r"\\[dt]?frac\s*([^\s{\\])\s*([^\s{\\])")  # as in a half: \frac12
_CHOICE = re.compile(r"\\binom\s*" + _GROUP + r"\s*" + _GROUP)
_ROOT = re.compile(r"\\sqrt\s*" + _GROUP)
_WORDS = re.compile(r"\\(?:text|mathrm|mathbf|mathit|mathcal|mathbb|operatorname|boldsymbol)\s*" + _GROUP)
_OVER = re.compile(rf"\\(?:bar|overline)\s*(?:{_GROUP}|(\w))")
_HAT = re.compile(rf"\\(?:hat|widehat|tilde)\s*(?:{_GROUP}|(\w))")
_ROWS = re.compile(r"\\begin\{(cases|pmatrix)\}(.*?)\\end\{\1\}", re.DOTALL)
_COMMAND = re.compile(r"\\([A-Za-z]+) ?")
_ONE_LETTER_SCRIPT = re.compile(r"([_^])\{([^{}])\}")


def in_letters(latex: str) -> str:
    r"""Write a formula so that it can be read on a screen; what is not known stays as it is written.

    Examples
    --------
    >>> in_letters(r"\frac{1}{n} \sum_{i=1}^{n} \chi_i \le 1")
    '1/n Σ_{i=1}^n χ_i ≤ 1'
    >>> in_letters(r"\frac12 \binom{h-1}{f} \Bigl| x \Bigr|")
    '1/2 C(h-1, f) | x |'
    """
    text, before = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", _ROWS.sub(_in_a_line, latex)), ""
    while text != before:  # from the innermost outwards
        before = text
        text = _FRACTION.sub(lambda found: f"{_add_brackets(found[1])}/{_add_brackets(found[2])}", text)
        text = _CHOICE.sub(r"C(\1, \2)", text)
        text = _ROOT.sub(lambda found: f"√({found[1]})", text)
        text = _WORDS.sub(r"\1", text)
        text = _OVER.sub(lambda found: f"{found[1] or found[2]}\u0304", text)
        text = _HAT.sub(lambda found: f"{found[1] or found[2]}\u0302", text)
    text = re.sub(r"\\(?:left|right|[bB]igg?[lmr]?|displaystyle|limits)(?![A-Za-z])", "", text)
    text = re.sub(r"\\[,;:! ]", " ", text).replace(r"\|", "‖").replace(r"\%", "%")
    text = _COMMAND.sub(_sign, text)
    text = _ONE_LETTER_SCRIPT.sub(r"\1\2", text)
    return text.replace(r"\{", "{").replace(r"\}", "}").replace("&", "").replace("\\\\", "")


def _in_a_line(found: re.Match[str]) -> str:
    """Cases and matrices, which have rows and columns, in one line."""
    between, (left, right) = (" for ", (r"\{", r"\}")) if found[1] == "cases" else (", ", "[]")
    rows = (between.join(cell.strip() for cell in row.split("&")) for row in found[2].split("\\\\"))
    return f"{left} {'; '.join(rows)} {right}"


def _sign(found: re.Match[str]) -> str:
    word = found[1]
    if word in _SIGNS:
        space = " " if found[0].endswith(" ") else ""
        return _SIGNS[word] + space
    return found[0].removeprefix("\\")  # log, min, max … are words


def _add_brackets(part: str) -> str:
    """A part of a fraction, in brackets unless it is one thing."""
    return part if re.fullmatch(r"\\?\w+|\|[^|]*\|", part.strip()) else f"({part})"
