# Every target sets up the environment by itself when it is missing or older than pyproject.toml.
#   make demo        real daily bars, four learners, backtest, report
#   make test        under 6 minutes; make test-all adds the long studies; make test-gpu needs a GPU
# JOBS=N runs tests in N processes; a file stays in one of them, which shares its compiled code.
# VENV=DIR takes another environment, PYTHON=FILE an interpreter that has everything already (nothing is set up then).

VENV ?= .venv
JOBS ?= 2
SYSTEM_PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$name" -c 'import sys; raise SystemExit(not (3, 11) <= sys.version_info < (3, 15))' >/dev/null 2>&1 && echo "$$name" && break; done)

ifeq ($(origin PYTHON), undefined)
PYTHON := $(VENV)/bin/python
DEMO_READY := setup-demo
TEST_READY := setup-test
DOCS_READY := setup-docs
endif

PYTEST := $(PYTHON) -P -m pytest

.PHONY: demo test test-all test-gpu bench docs lint clean setup-demo setup-test setup-docs venv

demo: $(DEMO_READY)
	@$(PYTHON) -P -m bellmark demo $(ARGS)

test: $(TEST_READY)
	@$(PYTEST) -m "not slow and not gpu" -n $(JOBS) --dist loadfile $(ARGS)

test-all: $(TEST_READY)
	@$(PYTEST) -m "not gpu" -n $(JOBS) --dist loadfile $(ARGS)

test-gpu: $(TEST_READY)
	@$(PYTEST) -m gpu $(ARGS)

bench: $(TEST_READY)
	@for file in benchmarks/*.py; do PYTHONPATH=benchmarks $(PYTHON) -P "$$file" || exit 1; done

docs: $(DOCS_READY)
	@$(PYTHON) -P docs/generate.py
	@$(PYTHON) -P -m mkdocs build --strict --site-dir build/site

# Type checkers cannot see the folder mapping of an editable install, so the package is laid out once and checked there.
lint: $(TEST_READY)
	@$(PYTHON) -P -m ruff check .
	@rm -rf build/lint && $(PYTHON) -P -m pip install --quiet --no-deps --no-build-isolation --target build/lint .
	@MYPYPATH=build/lint $(PYTHON) -P -m mypy --config-file pyproject.toml -p bellmark

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache

venv:
	@test -n "$(SYSTEM_PYTHON)" || { echo "error: Python 3.11 to 3.14 is needed; none of python3, python3.11 ... python3.14 is one" >&2; exit 3; }
	@test -x $(VENV)/bin/python || "$(SYSTEM_PYTHON)" -m venv $(VENV) || { \
		echo "error: $(SYSTEM_PYTHON) cannot make $(VENV): its venv module is missing (on Debian: apt install python3-venv)" >&2; exit 3; }

# One stamp for each set of extras: the pyproject.toml that it was installed from. [test] and [docs] include what the demo needs.
setup-demo: venv
	@cmp -s pyproject.toml $(VENV)/.installed-test || cmp -s pyproject.toml $(VENV)/.installed-demo || \
		{ echo "setting up $(VENV) (once)" >&2; $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[demo]' \
		&& cp pyproject.toml $(VENV)/.installed-demo; }

setup-test: venv
	@cmp -s pyproject.toml $(VENV)/.installed-test || \
		{ echo "setting up $(VENV) (once)" >&2; \
		$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77' wheel -e '.[test]' \
		&& cp pyproject.toml $(VENV)/.installed-test; }

setup-docs: setup-test
	@cmp -s pyproject.toml $(VENV)/.installed-docs || \
		{ $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test,docs]' \
		&& cp pyproject.toml $(VENV)/.installed-docs; }
