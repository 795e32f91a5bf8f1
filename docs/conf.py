"""How the documentation is built. It needs no network: no intersphinx, formulas as MathML."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

from sfumato.version import __version__  # noqa: E402

project = "sfumato"
author = "The sfumato developers"
copyright = "The sfumato developers"
version = release = __version__

extensions = ["myst_parser", "sfumato_reference", "mathml", "moved"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]
nitpicky = True

html_theme = "furo"
html_title = f"sfumato {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
