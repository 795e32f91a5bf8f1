"""Put into the wheel what it is made of and what it needs (PEP 770), told from the files that are built."""

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement

STATIC = Path("src/sfumato/report/static")

#: What nobody who uses the package installs.
FOR_DEVELOPERS = {"all", "docs", "test"}


class BillOfMaterials(BuildHookInterface):
    """Hatchling's hook: runs for the wheel only (`pyproject.toml`)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Write the bill beside the tree, and say where it is."""
        core = self.metadata.core
        bill = bill_of_materials(
            Path(self.root), self.metadata.version, core.dependencies, core.optional_dependencies
        )
        self.folder = tempfile.mkdtemp()
        path = Path(self.folder) / f"{self.metadata.name}.cdx.json"
        path.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was written for the build alone."""
        shutil.rmtree(self.folder)


def bill_of_materials(
    root: Path, version: str, dependencies: Sequence[str], extras: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """As a dictionary for JSON (CycloneDX 1.6); no time and no serial number, so that builds are equal."""
    optional = [each for name, group in extras.items() if name not in FOR_DEVELOPERS for each in group]
    needed = {Requirement(each).name for each in dependencies}
    components = [
        *vendored(root / STATIC),
        *(library(Requirement(each), "required") for each in sorted(dependencies)),
        *(library(each, "optional") for each in distinct(optional) if each.name not in needed),
    ]
    itself = {
        "type": "library",
        "bom-ref": f"pkg:pypi/sfumato@{version}",
        "name": "sfumato",
        "version": version,
        "purl": f"pkg:pypi/sfumato@{version}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": components,
        "dependencies": [
            {"ref": itself["bom-ref"], "dependsOn": sorted(each["bom-ref"] for each in components)}
        ],
    }


def vendored(folder: Path) -> Iterator[dict[str, Any]]:
    """Scripts of others, in the wheel as they were taken; their versions stand beside their licences."""
    text = (folder / "LICENSES.txt").read_text(encoding="utf-8")
    for name, version, file, licence in re.findall(r"^(\S+) (\S+)  \((\S+)\)\n(\S+)$", text, re.MULTILINE):
        sha = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        yield {
            "type": "library",
            "bom-ref": f"pkg:npm/{name}@{version}",
            "name": name,
            "version": version,
            "scope": "required",
            "purl": f"pkg:npm/{name}@{version}",
            "hashes": [{"alg": "SHA-256", "content": sha}],
            "licenses": [{"license": {"id": licence}}],
            "evidence": {"occurrences": [{"location": f"sfumato/report/static/{file}"}]},
        }


def library(requirement: Requirement, scope: str) -> dict[str, Any]:
    """What is installed beside the package: no version, but those that are allowed."""
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{requirement.name}",
        "name": requirement.name,
        "scope": scope,
        "purl": f"pkg:pypi/{requirement.name}",
        "properties": [{"name": "sfumato:allowed-versions", "value": str(requirement.specifier)}],
    }


def distinct(requirements: Sequence[str]) -> list[Requirement]:
    """Each library once, with all that any extra says of its versions."""
    found: dict[str, Requirement] = {}
    for each in map(Requirement, sorted(requirements)):
        if each.name in found:
            found[each.name].specifier &= each.specifier
        else:
            found[each.name] = each
    return list(found.values())
