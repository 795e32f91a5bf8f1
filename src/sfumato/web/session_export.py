"""A session as it is repeated without the page: Python that shows every choice, and lines for the console."""

from __future__ import annotations

import shlex
import textwrap
import tomllib
from collections.abc import Sequence
from pprint import pformat

#: What each part of a plan answers.
_QUESTIONS = {
    "data": "How is the file read?",
    "columns": "What could someone know? A role for each column",
    "scenarios": "Who gets it, and what must hold against whom?",
    "requirements": "What must hold against everyone?",
    "resources": "Which other files are used?",
    "steps": "What is done to the data?",
    "output": "What is written?",
    "release": "What is it for?",
}
_WIDTH = 100


def python_file(toml: str, actions: Sequence[str], *, folder: str, override: str = "") -> str:
    """Python that makes the release of a plan again, by public calls; nothing if the plan is no TOML."""
    try:
        plan = tomllib.loads(toml)
    except (ValueError, RecursionError):
        return ""
    parts = [
        f"# {_QUESTIONS.get(name, 'And:')}\n{name!r}: {pformat(value, width=_WIDTH, sort_dicts=False)},"
        for name, value in plan.items()
    ]
    remarks = "".join(f"#   {each!r}\n" for each in actions)
    reason = f", override={override!r}" if override else ""
    lines = (
        f"# Run this in the folder of the data. What was done on the page:\n{remarks}",
        "import sfumato\n",
        f"plan = sfumato.Plan.from_dict({{\n{textwrap.indent(chr(10).join(parts), '    ')}\n}})",
        f"released = sfumato.release(plan.data.path, plan=plan{reason})",
        "for sentence in released.sentences():\n    print(sentence)",
        f"released.write({folder!r})\n",
    )
    text = "\n".join(lines)
    return f"import datetime\n\n{text}" if "datetime." in text else text


def console_lines(plan_path: str, *, folder: str, written: str = "", override: str = "") -> list[str]:
    """What makes the release of a plan again in a terminal, and checks the one that was ``written``."""
    reason = ["--override", override] if override else []
    words = [["sfumato", "release", plan_path, "--out", folder, *reason]]
    words += [["sfumato", "verify", written]] if written else []
    return [shlex.join(each) for each in words]
