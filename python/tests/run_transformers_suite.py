# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs transformers' own comparison of eager attention and sdpa, with Fovea in the
place of sdpa.

    python run_transformers_suite.py TESTS [OPTION OF PYTEST...]

TESTS is the folder `tests` of a checkout of transformers, or of its source
distribution. Of `ModelTesterMixin`, which each model's tests inherit, those run that
compare attention: types, sides of padding, with and without a mask, hidden states
within transformers' own bounds. The models are those of test_transformers.py.
"""

import pathlib
import sys
import tempfile
import types

import pytest
from transformers import testing_utils

import fovea.transformers  # noqa: F401, registers the name
from fovea import _explain
from test_transformers import CONFIGS, make_config, make_inputs

#: What transformers' tests import, and those that run do not need. A source
#: distribution has only a part of the tests.
_OTHERS = {"exporters.test_export": "ExportTesterMixin",
           "generation.test_utils": "GenerationTesterMixin"}

_NAMES = ("test_eager_matches_sdpa_inference",)


def _load(folder):
    """Returns transformers' module of common tests, with Fovea for sdpa."""
    package = types.ModuleType("tests")
    package.__path__ = [str(folder)]
    sys.modules["tests"] = package
    for name, cls in _OTHERS.items():
        if not (folder / f"{name.replace('.', '/')}.py").exists():
            outer, _, _ = name.partition(".")
            sys.modules[f"tests.{outer}"] = types.ModuleType(f"tests.{outer}")
            module = sys.modules[f"tests.{name}"] = types.ModuleType(name)
            setattr(module, cls, type(cls, (), {}))
    source = (folder / "test_modeling_common.py").read_text()
    ours = source.replace('attn_implementation="sdpa"', 'attn_implementation="fovea"')
    if ours == source:
        sys.exit(f"{folder}: the tests name no attn_implementation=\"sdpa\"")
    # Some models do not support sdpa, which has neither sinks nor soft caps.
    ours = ours.replace("self.all_model_classes[0]._supports_sdpa",
                        "self.all_model_classes")
    module = types.ModuleType("tests.test_modeling_common")
    module.__package__ = "tests"
    sys.modules[module.__name__] = module
    exec(compile(ours, str(folder / "test_modeling_common.py"), "exec"),
         module.__dict__)
    return module


class _Tester:
    """What the mixin asks for a configuration and inputs."""

    def __init__(self, name):
        self.name = name
        self.num_labels = 2

    def prepare_config_and_inputs_for_common(self):
        inputs = make_inputs(self.name, True)
        return make_config(self.name)[1], {
            name: x.to(testing_utils.torch_device) for name, x in inputs.items()}


def make_tests(name, module):
    """Returns the class of the tests of a model."""
    mixin = module.ModelTesterMixin

    def set_up(self):
        self.model_tester = _Tester(name)

    inherited = {at: None for at in dir(mixin) if at.startswith("test_")
                 and not at.startswith(_NAMES)}
    return type(f"Test_{name}", (mixin, module.unittest.TestCase), {
        **inherited, "setUp": set_up, "all_model_classes": (make_config(name)[0],)})


class _Plugin:
    """Counts the tests that run Fovea's kernels."""

    def __init__(self):
        self.used = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        with _explain.recording() as kernels:
            try:
                return (yield)
            finally:
                self.used += bool(kernels)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.write_line(f"{self.used} tests ran Fovea's kernels")


_FILE = """
import run_transformers_suite as suite
for name in suite.CONFIGS:
    cls = suite.make_tests(name, suite.module)
    globals()[cls.__name__] = cls
del cls
"""


def main():
    global module
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    # The file of tests imports this module.
    sys.modules["run_transformers_suite"] = sys.modules["__main__"]
    module = _load(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "test_models.py"
        file.write_text(_FILE)
        sys.exit(pytest.main(["-p", "no:cacheprovider", "-q", str(file),
                              *sys.argv[2:]], [_Plugin()]))


if __name__ == "__main__":
    main()
