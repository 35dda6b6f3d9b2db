"""Packaging: every package is listed, imports follow the data, and the repository's folders are never imported by their own names."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDERS = {name: ROOT / folder for name, folder in SETUPTOOLS["package-dir"].items()}

# The order in which data pass through the engine; a module imports only from lines before its own (or its own line).
LAYERS = (
    "errors",
    "files toml_lines profile_text",
    "component hookspecs",
    "host settings profile_layers profile",
    "codegen backend buffers stages control doctor elementary math rng clock",
    "calendar holidays instrument instruments bars contracts tape trials splits",
    "datasets",
    "actions market features ledger lane_fields lane_layout lane_text lane_blocks lane_steps lane_runs lane testing_market",
    "environment results market_data",
    "replay policy guard",
    "blas network losses optimizer",
    "collector learning",
    "checkpoints run",
    "training",
    "plugins strategies",
    "evaluation",
    "backtester",
    "assembly plugins.metrics records sweep_axes sweeping policy_signals",
    "reporting",
    "plugins.reports",
    "api testing testing_proof describe",
    "cli __main__ __init__",
)
HEAVY = ("polars", "bokeh", "pandas", "jinja2")
MAY_BE_HEAVY = ("datasets", "reporting", "api", "cli", "plugins/reports")


def modules():
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            yield package, folder, path


def name_of(package, folder, path):
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join([package, *(part for part in parts if part != "__init__")])


def imported(path, *, at_import_only=False):
    """Dotted names that a file imports; `from a import b` gives a and a.b."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        lazy = at_import_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if lazy or checking:
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: expected an absolute import, found a relative one"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(name):
    parts = name.split(".")[1:] or ["__init__"]
    for head in (".".join(parts[:2]), parts[0]):
        found = next((place for place, line in enumerate(LAYERS) if head in line.split()), None)
        if found is not None:
            return found
    return None


def test_every_package_is_listed():
    found = {name_of(package, folder, path.parent / "__init__.py") for package, folder, path in modules()}
    listed = set(SETUPTOOLS["packages"])
    assert found - listed == set(), "a package missing here vanishes from the wheel without a word"
    assert listed - found == set()
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), f"{package}: {path.parent} has no __init__.py"


def test_data_files_of_the_package_are_declared():
    patterns = {package: set(found) for package, found in SETUPTOOLS["package-data"].items()}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*"):
            relative = path.relative_to(folder)
            if path.is_file() and path.suffix not in (".py", ".pyc") and not path.name.startswith("."):
                declared = any(relative.match(pattern) for pattern in patterns.get(package, ()))
                assert declared, f"{package}: {relative} would not be installed"


def test_every_module_has_its_place_in_the_order():
    for package, folder, path in modules():
        if package == "bellmark":
            name = name_of(package, folder, path)
            assert layer_of(name) is not None, f"{name} is not in LAYERS: say where in the flow of data it stands"


def test_imports_follow_the_data():
    wrong = []
    for package, folder, path in modules():
        name = name_of(package, folder, path)
        own = layer_of(name)
        for other in imported(path, at_import_only=True):
            there = layer_of(other) if other.startswith("bellmark.") else None
            if there is not None and own is not None and there > own:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


def test_only_datasets_and_reports_import_what_a_training_machine_may_lack():
    for _, _, path in modules():
        relative = path.relative_to(ROOT).as_posix().removeprefix("engine/")
        if not relative.startswith(MAY_BE_HEAVY):
            found = [name for name in imported(path) if name.split(".")[0] in HEAVY]
            assert found == [], f"{relative} imports {found}"


def test_no_module_imports_a_folder_of_the_repository_by_its_own_name():
    banned = {path.name for path in FOLDERS.values()}
    for path in [*(path for _, _, path in modules()), *(ROOT / "tests").rglob("*.py")]:
        found = [name for name in imported(path) if name.split(".")[0] in banned | {"pickle"}]
        assert found == [], f"{path}: import bellmark.{found[0]}"


def test_lint_bans_the_same_imports():
    banned = PROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert {path.name for path in FOLDERS.values()} | {"pickle"} <= set(banned)


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"numpy", "numba", "polars", "pydantic", "rich", "pluggy", "scipy"}
    code = f"import sys, bellmark, bellmark.cli; print(sorted(set(sys.modules) & {heavy}))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.cpu
def test_building_the_catalog_loads_no_table_or_chart_package_and_no_gpu_package():
    code = (
        "import sys; from bellmark.host import host; loaded = host(); assert all(record.status == 'ok' for record in loaded.plugins);"
        "print(sorted(set(sys.modules) & {'polars','bokeh','pandas','jinja2','cuda','numba_cuda','torch'}))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_public_names_are_functions_whatever_modules_are_imported():
    code = "import bellmark.reporting, bellmark.backtester, bellmark; print(callable(bellmark.report), callable(bellmark.backtest))"
    done = subprocess.run([sys.executable, "-P", "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("True True", "")


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    import bellmark

    assert dir(bellmark) == sorted(bellmark.__all__)
    with pytest.raises(AttributeError, match="module 'bellmark' has no attribute 'trian'"):
        _ = bellmark.trian


def test_extras_of_the_design_are_declared():
    extras = PROJECT["project"]["optional-dependencies"]
    assert {"cuda", "demo", "databento", "calendars", "search", "cluster", "interop", "trackers", "test", "docs"} <= set(extras)
    assert all("sys_platform != 'darwin'" in requirement for requirement in extras["cuda"])


def test_licence_is_the_whole_text():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text
