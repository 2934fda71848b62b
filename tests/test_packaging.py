"""The package is what the folders are: tables, type marker, public names, dependencies of one direction."""

from __future__ import annotations

import ast
import importlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
NOT_SHIPPED = {"tests", "benchmarks", "build", "dist"}


def folders() -> list[Path]:
    """Every folder with an ``__init__.py`` that belongs to the package."""
    found = [path.parent.relative_to(ROOT) for path in ROOT.glob("**/__init__.py")]
    return sorted(path for path in found if not path.parts[0].startswith(".") and path.parts[0] not in NOT_SHIPPED)


FOLDERS = folders()


def name_of(folder: Path) -> str:
    return ".".join(("maps_rag", *folder.parts))


def test_both_tables_of_pyproject_name_exactly_the_folders():
    names = {name_of(folder): str(folder) for folder in FOLDERS}
    assert SETUPTOOLS["packages"] == sorted(names)
    assert SETUPTOOLS["package-dir"] == names


def test_no_folder_of_the_import_name_hides_the_installed_package():
    assert not (ROOT / "maps_rag").exists()


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_package_is_typed(folder):
    assert (ROOT / folder / "py.typed").is_file()
    assert "py.typed" in SETUPTOOLS["package-data"]["*"]


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_public_name_can_be_imported(folder):
    module = importlib.import_module(name_of(folder))
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(module, name)] == []


def test_every_data_file_of_a_package_is_shipped():
    patterns = SETUPTOOLS["package-data"]["*"]
    for folder in FOLDERS:
        for path in (ROOT / folder).iterdir():
            if path.is_file() and path.suffix not in {".py", ".pyc"}:
                assert any(path.match(pattern) for pattern in patterns), path


def test_the_command_exists():
    target = PROJECT["project"]["scripts"]["maps-rag"]
    module, _, name = target.partition(":")
    assert callable(getattr(importlib.import_module(module), name))


# Which folders a folder may import from: dependencies point one way.
ALLOWED = {
    "signatures": {"signatures"},
    "programs": {"programs", "signatures"},
    "metrics": {"metrics", "programs"},
    "optimize": {"optimize", "metrics", "programs", "signatures"},
    "cli": {"cli", "optimize", "metrics", "programs", "signatures"},
}


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import absolutely"
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in found if name.startswith("maps_rag.")}


@pytest.mark.parametrize("top", sorted({folder.parts[0] for folder in FOLDERS}))
def test_dependencies_point_one_way(top):
    for path in sorted((ROOT / top).glob("**/*.py")):
        assert imports_of(path) <= ALLOWED[top], path
