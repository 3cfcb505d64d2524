"""What can be tested about style is a test."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TRACKED = [path for path in ROOT.rglob("*") if path.is_file() and not {".git", ".venv"} & set(path.parts)]
TEXTS = [path for path in TRACKED if path.suffix in {".py", ".md", ".toml", ".txt", ".sql", ""}]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "it has no docstring"


def test_nothing_is_called_manager_or_utils() -> None:
    for path in SOURCES:
        assert path.stem not in {"utils", "util", "helpers", "common", "misc"}, path
        names = [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
        assert not [name for name in names if name.endswith("Manager")], path


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent.name for path in SOURCES if path.name == "__init__.py" and path.parents[2].name == "src"}
    on_the_map = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "map.md").read_text(), re.MULTILINE))
    assert rooms <= on_the_map


def test_every_link_between_documents_leads_somewhere() -> None:
    for path in (path for path in TEXTS if path.suffix == ".md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_versions_are_pinned_by_name_alone() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.]+", line), line


def test_every_room_without_io_is_held_to_purity() -> None:
    """A new core that is not named in the contract would be free to read a clock."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\w[\w ]*) \|$", (ROOT / "docs" / "map.md").read_text(), re.MULTILINE)
    pure = {f"greenline.{room}" for room, io in rows if io == "no"}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (forbidden,) = (each for each in contracts if each["name"].startswith("A protocol core reads no clock"))
    assert pure == set(forbidden["source_modules"])
