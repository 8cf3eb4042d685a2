"""Examples in docstrings do what they say."""

import doctest
import importlib
import pkgutil

import polyurn
import pytest

MODULES = [name for _, name, _ in pkgutil.iter_modules(polyurn.__path__) if name != "_core"]


@pytest.mark.parametrize("name", [None, *MODULES])
def test_examples_of_a_module_run(name):
    module = polyurn if name is None else importlib.import_module(f"polyurn.{name}")
    flags = doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(module, extraglobs={"polyurn": polyurn}, optionflags=flags)
    assert result.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(f"polyurn.{name}"))]
    assert sum(bool(test.examples) for test in found) >= 15
