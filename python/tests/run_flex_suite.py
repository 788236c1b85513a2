# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs tests that others wrote for FlexAttention, with Fovea in its place.

    python run_flex_suite.py [--set NAME=VALUE]... [--pytorch] [FILE...]
                             [--attention-gym CHECKOUT] [-- OPTION OF PYTEST...]

FILE is a test of a checkout, such as PyTorch's test/inductor/test_flex_attention.py
or a test of meta-pytorch/attention-gym (whose package must be importable). Such tests
compare `torch.compile(flex_attention)` with the eager one. Here the first is
`fovea.flex_attention`; the second stays PyTorch's, and is its reference. Without a
GPU, "cuda" in a copy of the file becomes "cpu"; `--set S=256` changes a constant that
it assigns at the top, such as a length that takes a processor long. `--pytorch` leaves
out the tests of PyTorch 2.6 that are not about Fovea, see `_OTHER`, and runs those for
GPUs on a CPU. `--attention-gym` adds the tests of that project which are about masks
and mods.
"""

import argparse
import functools
import pathlib
import re
import sys
import tempfile

import pytest
import torch
from torch.nn.attention import flex_attention as module
from torch.nn.attention.experimental import _paged_attention

import fovea
from fovea import _explain

#: Tests of PyTorch 2.6's test_flex_attention.py and test_flex_decoding.py, as an
#: expression of pytest's -k, that do not apply, by the reason.
_OTHER = {
    "they count graphs of torch.compile, or read its code":
        "builtin_score_mods_dynamic or builtin_score_mods_automatic_dynamic or "
        "free_symbol_dynamic or symbol_closure_in_score_mod or "
        "fw_bw_graph_correctness or epilogue_fused or mask_mod_combiners or "
        "kernel_options_argument or logsumexp_only_return or "
        "do_not_trigger_dynamic_shapes",
    "they expect a refusal; Fovea computes it":
        "cant_lower_error_message or captured_reduction or invalid_block_size or "
        "symmetric_bias or mixed_dtypes_fails or bw_decoding_fails or "
        "cpu_error_message_return_lse or validate_cpu_dtype",
    "later versions of PyTorch differ, its own function, too":
        "block_mask_attributes or test_getitem or no_q_info_compile_False or "
        "captured_wrong_device",
    "where a dimension has one element, its stride says nothing":
        "stride_ordering and permute_order2_shape0",
    "the reference sums gradients of thousands of elements in 16 bits":
        "head_specific_gate and bfloat16",
}
#: The same on CPUs alone, and on GPUs.
_OTHER_ON_CPUS = {
    "they need a CUDA device": "mixed_device_error or block_mask_device_change",
    "the test asks for no log-sum-exp on a CPU": "force_write_lse",
}
_OTHER_ON_GPUS = {
    "the reference sums gradients in 16 bits, and has no error by chance; Fovea's is "
    "below 0.001": "head_specific_gate and len:277 and dtype:float16 or "
                   "weird_bias and len:37 and dtype:float16",
}

#: The files of attention-gym's tests of masks and mods; that of natten wants the memory
#: of a GPU.
_GYM = ("mods", "document_mask", "graphormer", "sandwich", "shared_prefix", "jetspec",
        "block_diffusion", "vsa", "causal_block_mask", "global_sliding_window")

_compile = torch.compile
_theirs = module.flex_attention
_their_assign = _paged_attention.PagedAttention.assign


def _replace(function):
    """Returns what a test compiles, with Fovea's attention in it."""
    if function is _theirs:
        return fovea.flex_attention
    if isinstance(function, functools.partial):
        return functools.partial(_replace(function.func), *function.args,
                                 **function.keywords)
    scope = getattr(function, "__globals__", {})

    @functools.wraps(function)
    def call(*args, **kwargs):
        names = [name for name, value in scope.items() if value is _theirs]
        scope.update(dict.fromkeys(names, fovea.flex_attention))
        try:
            return function(*args, **kwargs)
        finally:
            scope.update(dict.fromkeys(names, _theirs))

    return call


def _fake_compile(model=None, **options):
    if model is None:
        return functools.partial(_fake_compile, **options)
    if getattr(model, "__module__", None) == module.__name__ and (
            model is not _theirs):
        # The reference itself.
        return _compile(model, **options)
    return _replace(model)


def _assign(cache, batch_idx, input_pos, *values):
    """Gives each sequence the positions that tests of PyTorch 2.6 have for all."""
    if input_pos.dim() == 1:
        input_pos = input_pos.expand(len(batch_idx), -1)
    return _their_assign(cache, batch_idx, input_pos, *values)


# This module is pytest's plugin, so that the processes of pytest-xdist (-n) have it.


def pytest_sessionstart():
    """Puts Fovea in place."""
    torch.compile = _fake_compile
    _paged_attention.PagedAttention.assign = _assign
    # The reference has gradients on the CPU too, though it refuses them.
    module._validate_device = lambda *_: None
    if not torch.cuda.is_available():
        torch.cuda.get_device_capability = lambda *_: (9, 0)
        cache = _paged_attention.PagedAttention.__init__
        cache.__defaults__ = tuple(
            "cpu" if default == "cuda" else default
            for default in cache.__defaults__)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with _explain.recording() as kernels:
        try:
            return (yield)
        finally:
            item.user_properties.append(("used", bool(kernels)))


def pytest_terminal_summary(terminalreporter):
    """Counts the tests that ran Fovea, and passed or failed."""
    used = sum(("used", True) in report.user_properties
               for name in ("passed", "failed")
               for report in terminalreporter.getreports(name)
               if report.when == "call")
    terminalreporter.write_line(f"{used} tests ran Fovea's kernels")


def _prepare(source, constants, is_pytorchs):
    """Returns the text of a test as it is run."""
    for constant in constants:
        name, _, value = constant.partition("=")
        source, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", source,
                                flags=re.M)
        if not count:
            sys.exit(f"--set {constant}: no test assigns {name}")
    if is_pytorchs:
        source = re.sub(r"^(supported_platform|supports_learnable_bias) = .*\($",
                        r"\1 = __import__('unittest').skipUnless(True or",
                        source, flags=re.M)
    if not torch.cuda.is_available():
        # Conditions for skipping see a function, which is true.
        for old, new in (('"cuda"', '"cpu"'), ('"cuda:0"', '"cpu"'),
                         (".cuda()", ".cpu()"),
                         ("cuda.is_available()", "cuda.is_available")):
            source = source.replace(old, new)
    return source


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--set", action="append", default=[],
                        metavar="NAME=VALUE", dest="constants")
    parser.add_argument("--pytorch", action="store_true")
    parser.add_argument("--attention-gym", type=pathlib.Path, metavar="CHECKOUT")
    options = parser.parse_args(arguments[:split])
    if gym := options.attention_gym:
        sys.path.append(str(gym.resolve()))
        names = [*_GYM, *(["natten"] if torch.cuda.is_available() else [])]
        options.files += [gym / f"test/test_{name}.py" for name in names]
    if not options.files:
        parser.error("expected a FILE or --attention-gym")
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for path in options.files:
            copy = pathlib.Path(folder) / path.name
            copy.write_text(_prepare(path.read_text(), options.constants,
                                     options.pytorch))
            copies.append(str(copy))
        if options.pytorch:
            here = _OTHER_ON_GPUS if torch.cuda.is_available() else _OTHER_ON_CPUS
            other = [*_OTHER.values(), *here.values()]
            copies += ["-k", f"not ({' or '.join(f'({each})' for each in other)})"]
        sys.exit(pytest.main(["-p", "no:cacheprovider", "-p", "run_flex_suite", "-q",
                              *copies, *arguments[split + 1:]]))


if __name__ == "__main__":
    main()
