"""The reference pages are what the program prints, and the pages for people name what exists."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def generator():
    spec = importlib.util.spec_from_file_location("bellmark_docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["command-line.md", "components.md", "profile.md", "data-formats.md"])
def test_reference_page_is_fresh(name):
    path = ROOT / "docs" / "reference" / name
    assert path.read_text(encoding="utf-8") == generator().pages()[name], "run: python docs/generate.py"


def test_layout_names_every_module_and_none_that_is_gone():
    text = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:engine|plugins|strategies|datasets|cuda_kernels|profiles)/[\w/.]*)`", text))
    gone = sorted(path for path in named if not (ROOT / path).exists())
    assert gone == []
    modules = {f"engine/{path.name}" for path in (ROOT / "engine").glob("*.py") if not path.name.startswith("__")}
    assert sorted(modules - named) == []


PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{name}.md" for name in ("index", "layout", "data", "your-own-bars", "synthetic-markets"))]


@pytest.mark.parametrize("page", PAGES)
def test_links_to_files_of_the_repository_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []
