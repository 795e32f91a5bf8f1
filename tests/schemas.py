"""Shapes of JSON: a check for the part of JSON Schema that ours are written in, and what real files look like.

``python tests/schemas.py report FILE…`` prints the schema that these reports have in common: what is always
there, with its types. What only some have is not in it, and is allowed.
"""

import json
import re
import sys
from pathlib import Path

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip
KNOWN = {
    "type", "const", "enum", "minLength", "pattern", "properties", "required", "additionalProperties", "items",
    "prefixItems", "anyOf", "allOf", "if", "then", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "$defs", "$id", "$schema", "title", "description",
}  # fmt: skip
TITLES = {"report": "Report of a release", "study": "Report of a study"}


def faults(value, said, whole, place=""):
    """What of a value is not as a schema says."""
    if said is False:
        return [f"{place} must not be there"]
    if "$ref" in said:
        name = said["$ref"].rpartition("/")[2]
        return faults(value, whole if name == "#" else whole["$defs"][name], whole, place)
    assert set(said) <= KNOWN, "the check must know every word of the schema"
    kinds = said.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = [kind for kind in kinds if isinstance(value, TYPES[kind])]
    if not fits or (isinstance(value, bool) and "boolean" not in kinds):
        return [f"{place} must be {kinds}"]
    if value != said.get("const", value) or value not in said.get("enum", [value]):
        return [f"{place} is another value"]
    found = [fault for each in said.get("allOf", ()) for fault in faults(value, each, whole, place)]
    if "if" in said and not faults(value, said["if"], whole):
        found += faults(value, said["then"], whole, place)
    ways = [faults(value, each, whole, place) for each in said.get("anyOf", ())]
    found += min(ways, key=len) if ways and all(ways) else []
    return found + faults_within(value, said, whole, place)


def faults_within(value, said, whole, place):
    if isinstance(value, str):
        long = len(value) >= said.get("minLength", 0)
        return [] if long and re.search(said.get("pattern", ""), value) else [f"{place} must match"]
    if isinstance(value, list):
        first = said.get("prefixItems", [])
        hints = [*first, *[said.get("items", {})] * (len(value) - len(first))]
        return [f for i, each in enumerate(value) for f in faults(each, hints[i], whole, f"{place}/{i}")]
    if isinstance(value, dict):
        return faults_of_table(value, said, whole, place)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = said.get("minimum", value), said.get("maximum", value)
        below, above = said.get("exclusiveMaximum", value + 1), said.get("exclusiveMinimum", value - 1)
        return [] if least <= value <= most and above < value < below else [f"{place} is out of bounds"]
    return []


def faults_of_table(value, said, whole, place):
    parts, rest = said.get("properties", {}), said.get("additionalProperties", {})
    found = [f"{place}/{key} is missing" for key in said.get("required", ()) if key not in value]
    for key, each in value.items():
        found += faults(each, parts.get(key, rest), whole, f"{place}/{key}")
    return found


def common(values, depth=9):
    """The schema of what several values have in common; to the depth of 1, types of what is never missing."""
    kinds = sorted({_kind(each) for each in values})
    kinds = [each for each in kinds if each != "integer" or "number" not in kinds]
    if depth < 1 or (depth == 1 and "null" in kinds):  # what a few files have says little about others
        return {}
    said = {"type": kinds[0] if len(kinds) == 1 else kinds}
    tables = [each for each in values if isinstance(each, dict)]
    if tables:
        keys = [key for key in tables[0] if all(key in each for each in tables)]
        parts = {key: common([each[key] for each in tables], depth - 1) for key in keys}
        said |= {"required": keys, "properties": {key: part for key, part in parts.items() if part}}
    if depth == 1:
        return {"type": said["type"]}
    items = [item for each in values if isinstance(each, list) for item in each]
    return {**said, "items": common(items, depth - 1)} if items else said


def _kind(value):
    for kind in ("null", "boolean", "integer"):
        if isinstance(value, TYPES[kind]):
            return kind
    return next(kind for kind in ("number", "string", "array", "object") if isinstance(value, TYPES[kind]))


def shape(value, depth=2):
    """Keys and types of a value, as flat text; what a table is keyed by below that is data."""
    said = common([value])
    return _flat(said, depth)


def _flat(said, depth):
    if depth and "properties" in said:
        return {key: _flat(each, depth - 1) for key, each in said["properties"].items()}
    if depth and "items" in said:
        return [_flat(said["items"], depth - 1)]
    return said["type"] if isinstance(said["type"], str) else "|".join(said["type"])


if __name__ == "__main__":
    read = [json.loads(Path(each).read_text(encoding="utf-8")) for each in sys.argv[2:]]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:sfumato:{sys.argv[1]}",
        "title": TITLES[sys.argv[1]],
        "description": "What every such file has, internal and public. Other keys may be there too.",
    }
    json.dump({**head, **common(read, 2)}, sys.stdout, indent=1)
    sys.stdout.write("\n")
