"""Changes that change nothing that can be seen, each with the reason, for as long as its function stays as it is."""

import tomllib
from pathlib import Path

LIST = Path(__file__).with_name("equivalent.toml")


def entries() -> list[dict[str, str]]:
    """What is listed: function, hash, change and reason."""
    return tomllib.loads(LIST.read_text(encoding="utf-8")).get("equivalent", [])


def equivalents() -> set[tuple[str, str, str]]:
    """The listed changes, by function, hash and words."""
    return {(each["function"], each["hash"], each["change"]) for each in entries()}
