#!/usr/bin/env python3
# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fovea.flex_attention beside PyTorch's compiled flex_attention, and models of
transformers with either, in one process, on a GPU or a CPU.

    benchmarks/gpu/flex.py [--part mods models] [--device cuda] [--dtype bf16]
                           [--shape BxHxSxD] [--mods causal window ...]
                           [--models llama gemma gpt_oss] [--layers 8] [--hidden 4096]
                           [--tokens 8192] [--seconds 0.3] [--rounds 5]
                           [--threads N]
                           [--implementations fovea sdpa flex_attention]

`mods`: the first call of each side in seconds, its compilation included, and none of
it from a cache; then the median time of a call and the ratio of PyTorch's to Fovea's,
forward, and backward where PyTorch has it (on GPUs). Both sides run in turn, in
rounds, so that a machine's speed shifts for both. PyTorch gets its BlockMask, made
before. With `--threads 1` a CPU's times are those of the processor. Errors are those of the output against float64, of the last head, relative to
the largest magnitude; of Fovea, then of PyTorch.

`models`: a prefill, and a training step, forward and backward without an optimizer,
of a model with random weights. The share is that of attention: of as many calls of
the same attention alone as the model has layers.
"""

import argparse
import math
import os
import pathlib
import statistics
import sys
import time

# Compiling is measured, not finding what an earlier run compiled.
os.environ.setdefault("FOVEA_CACHE_DIR", "")
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")

import torch
import torch._functorch.config
from torch.nn.attention import flex_attention as theirs

# A backward pass is timed more than once for one forward pass.
torch._functorch.config.donated_buffer = False
_HERE = pathlib.Path(__file__).resolve()
for folder in (_HERE.parents[2] / "python", _HERE.parents[2]):
    if (folder / "fovea").is_dir():
        sys.path.insert(0, str(folder))
import fovea

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
MODS = {}


def mod(make):
    MODS[make.__name__] = make
    return make


def seen(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


@mod
def none(shape, device):
    return None, None


@mod
def causal(shape, device):
    return None, seen


@mod
def window(shape, device):
    width = shape[2] // 8
    return None, lambda b, h, i, j: (i >= j) & (i - j <= width)


@mod
def prefix(shape, device):
    lengths = torch.full((shape[0],), shape[2] // 4, device=device)
    return None, lambda b, h, i, j: (i >= j) | (j < lengths[b])


@mod
def documents(shape, device):
    ids = torch.arange(shape[2], device=device) * 7 // shape[2]
    return None, lambda b, h, i, j: (i >= j) & (ids[i] == ids[j])


@mod
def global_window(shape, device):
    width, most = shape[2] // 16, 16
    return None, lambda b, h, i, j: (i >= j) & ((i - j <= width) | (j < most))


@mod
def dilated(shape, device):
    width = shape[2] // 4
    return None, lambda b, h, i, j: (
        ((i - j).abs() <= width) & ((i - j) % 2 == 0))


@mod
def neighbourhood(shape, device):
    side, reach = int(math.isqrt(shape[2])), 6

    def mask(b, h, i, j):
        return ((i // side - j // side).abs() <= reach) & (
            (i % side - j % side).abs() <= reach)

    return None, mask


@mod
def alibi(shape, device):
    heads = shape[1]

    def score(s, b, h, i, j):
        return s + (j - i) * torch.exp2(-((h + 1) * 8.0 / heads))

    return score, seen


@mod
def softcap(shape, device):
    return (lambda s, b, h, i, j: 30 * torch.tanh(s / 30)), seen


@mod
def relative(shape, device):
    return (lambda s, b, h, i, j: s + (i - j)), None


@mod
def gelu(shape, device):
    return (lambda s, b, h, i, j: torch.nn.functional.gelu(s)), None


@mod
def bias(shape, device):
    """Learned, for each head and distance."""
    length = shape[2]
    table = torch.randn(shape[1], 2 * length, device=device, requires_grad=True)
    return (lambda s, b, h, i, j: s + table[h, i - j + length]), seen


@mod
def gate(shape, device):
    """Learned, for each head."""
    gates = torch.randn(shape[1], device=device, requires_grad=True)
    return (lambda s, b, h, i, j: s * gates[h]), None


#--- Times ---------------------------------------------------------------------


def synchronize(options):
    if options.device == "cuda":
        torch.cuda.synchronize()


def seconds_of(call, options, count):
    """Seconds of one of `count` calls in a row."""
    synchronize(options)
    if options.device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / count
    # The processor's time of the one thread: others' programs take none of it.
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


def compare(calls, options):
    """The median seconds of each call, of rounds in which all run in turn."""
    counts = []
    for call in calls:
        call()  # What it compiles, without gradients, is no part of a call's time.
        once = seconds_of(call, options, 2)
        counts.append(max(1, round(options.seconds / options.rounds / once)))
    rounds = [[seconds_of(call, options, count)
               for call, count in zip(calls, counts)]
              for _ in range(options.rounds)]
    return [statistics.median(column) for column in zip(*rounds)]


def first(call, options):
    """The seconds of a first call, and its result."""
    synchronize(options)
    start = time.perf_counter()
    result = call()
    synchronize(options)
    return time.perf_counter() - start, result


#--- Mods ----------------------------------------------------------------------


def relative_error(output, q, k, v, score_mod, mask_mod):
    """Of the last sequence's last head."""
    length = q.shape[2]
    last_b, last_h = q.shape[0] - 1, q.shape[1] - 1
    q, k, v = (x[-1, -1].detach().double() for x in (q, k, v))
    i = torch.arange(length, device=q.device)[:, None]
    j = torch.arange(length, device=q.device)[None]
    b, h = (torch.tensor(at, device=q.device) for at in (last_b, last_h))
    with torch.no_grad():
        scores = q @ k.mT / math.sqrt(q.shape[1])
        if score_mod:
            scores = score_mod(scores, b, h, i, j).double()
        if mask_mod:
            scores = scores.masked_fill(~mask_mod(b, h, i, j), -math.inf)
        expected = scores.softmax(-1).nan_to_num(0) @ v
        return ((output[-1, -1].double() - expected).abs().max()
                / expected.abs().max()).item()


def run_mod(name, shape, dtype, options, ratios):
    score_mod, mask_mod = MODS[name](shape, options.device)
    learned = [cell.cell_contents for cell in (
        score_mod.__closure__ or () if score_mod else ())
        if isinstance(cell.cell_contents, torch.Tensor)
        and cell.cell_contents.requires_grad]
    trains = options.device == "cuda"
    q, k, v = (torch.randn(shape, device=options.device, dtype=dtype,
                           requires_grad=trains) for _ in range(3))
    cotangent = torch.randn_like(q)
    for x in learned:
        x.requires_grad_(trains)
    blocks = mask_mod and theirs.create_block_mask(
        mask_mod, None, None, shape[2], shape[2], device=options.device)
    torch.compiler.reset()
    compiled = torch.compile(theirs.flex_attention)
    sides = [lambda: fovea.flex_attention(q, k, v, score_mod, mask_mod=mask_mod),
             lambda: compiled(q, k, v, score_mod, block_mask=blocks)]
    firsts, outputs, backwards = [], [], []
    for side in sides:
        taken, output = first(side, options)
        if trains:
            operands = (q, k, v, *learned)
            backward = lambda output=output: torch.autograd.grad(
                output, operands, cotangent, retain_graph=True)
            taken += first(backward, options)[0]
            backwards.append(backward)
        firsts.append(taken)
        outputs.append(output)
    errors = [relative_error(x.detach(), q, k, v, score_mod, mask_mod)
              for x in outputs]
    with torch.no_grad():
        forward = compare(sides, options)
    cells = [f"{firsts[0]:6.2f} {firsts[1]:6.2f} {firsts[1] / firsts[0]:5.1f}",
             f"{forward[0] * 1e3:9.3f} {forward[1] * 1e3:9.3f} "
             f"{forward[1] / forward[0]:6.2f}"]
    ratios["first call"].append(firsts[1] / firsts[0])
    ratios["forward"].append(forward[1] / forward[0])
    if trains:
        backward = compare(backwards, options)
        ratios["backward"].append(backward[1] / backward[0])
        cells.append(f"{backward[0] * 1e3:9.3f} {backward[1] * 1e3:9.3f} "
                     f"{backward[1] / backward[0]:6.2f}")
    print(f"{name:14} {' | '.join(cells)} | {errors[0]:.1e} {errors[1]:.1e}",
          flush=True)


def run_mods(options):
    shape = tuple(map(int, options.shape.split("x")))
    dtype = DTYPES[options.dtype]
    print(f"mods of {options.shape} in {options.dtype}; fovea, PyTorch, ratio of each:"
          "\nmod            first call, s       | forward, ms"
          + ("                | backward, ms" if options.device == "cuda" else ""))
    ratios = {"first call": [], "forward": [], "backward": []}
    for name in options.mods or MODS:
        try:
            run_mod(name, shape, dtype, options, ratios)
        except Exception as error:  # One side refuses the mod.
            print(f"{name:14} {type(error).__name__}: {str(error).splitlines()[0]}",
                  flush=True)
    for kind, numbers in ratios.items():
        if numbers:
            print(f"{kind}: geometric mean {statistics.geometric_mean(numbers):.2f}, "
                  f"least {min(numbers):.2f}, over {len(numbers)} mods")


#--- Models --------------------------------------------------------------------


def make_model(kind, implementation, options):
    import transformers
    heads = options.hidden // 128 if options.hidden >= 512 else 4
    sizes = dict(
        vocab_size=4096, hidden_size=options.hidden, num_hidden_layers=options.layers,
        intermediate_size=options.hidden * 7 // 2, num_attention_heads=heads,
        num_key_value_heads=max(heads // 4, 1), head_dim=options.hidden // heads,
        max_position_embeddings=options.tokens)
    torch.manual_seed(0)
    if kind == "llama":
        config, model = transformers.LlamaConfig, transformers.LlamaForCausalLM
    elif kind == "gpt_oss":
        config, model = transformers.GptOssConfig, transformers.GptOssForCausalLM
        sizes.update(sliding_window=options.tokens // 4, num_local_experts=2,
                     num_experts_per_tok=1, intermediate_size=options.hidden)
    else:
        config, model = transformers.Gemma2Config, transformers.Gemma2ForCausalLM
        sizes.update(sliding_window=options.tokens // 4,
                     query_pre_attn_scalar=sizes["head_dim"])
    config = config(**sizes, attn_implementation=implementation, use_cache=False)
    with torch.device(options.device):
        return model(config).to(DTYPES[options.dtype])


def attention_of(kind, implementation, config, options):
    """The attention of a layer alone, a function, with its operands."""
    from transformers import AttentionInterface
    from transformers.masking_utils import create_causal_mask
    q = torch.randn(1, options.tokens, config.num_attention_heads, config.head_dim,
                    device=options.device, dtype=DTYPES[options.dtype])
    k, v = (torch.randn(1, options.tokens, config.num_key_value_heads, config.head_dim,
                        device=options.device, dtype=q.dtype) for _ in range(2))
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    module = torch.nn.Module()
    module.is_causal, module.config, module.layer_idx = True, config, 0
    module.num_key_value_groups = q.shape[1] // k.shape[1]
    mask = create_causal_mask(
        config=config, inputs_embeds=torch.empty(
            1, options.tokens, config.hidden_size, device=options.device,
            dtype=q.dtype), attention_mask=None, past_key_values=None)
    function = AttentionInterface()[implementation]
    extra = {}
    if kind == "gemma":
        extra["softcap"] = config.attn_logit_softcapping
    elif kind == "gpt_oss":
        extra["s_aux"] = torch.randn(q.shape[1], device=q.device, dtype=q.dtype)
    return lambda *operands: function(
        module, *operands, mask, scaling=q.shape[-1]**-0.5, **extra)[0], (q, k, v)


def run_models(options):
    try:
        import transformers
        import fovea.transformers
    except ImportError as error:
        print(f"models: {error}")
        return
    transformers.logging.set_verbosity_error()
    for kind in options.models:
        print(f"{kind}: {options.layers} layers, hidden {options.hidden}, "
              f"{options.tokens} tokens, {options.dtype}; ms, and attention's share\n"
              "implementation  first prefill, s  prefill         training step")
        subjects = []
        for implementation in options.implementations:
            try:
                subjects.append(Subject(kind, implementation, options))
            except Exception as error:
                print(f"{implementation:15} {type(error).__name__}: "
                      f"{str(error).splitlines()[0][:70]}", flush=True)
        with torch.no_grad():
            prefills = compare([call for x in subjects
                                for call in (x.prefill, x.attend)], options)
        training = [x for x in subjects if x.trains]
        steps = compare([call for x in training for call in (x.train, x.step)],
                        options)
        for x, whole, part in zip(subjects, prefills[::2], prefills[1::2]):
            x.cells.append(f"{whole * 1e3:9.2f} {part * options.layers / whole:5.0%}")
        for x, whole, part in zip(training, steps[::2], steps[1::2]):
            x.cells.append(f"{whole * 1e3:9.2f} {part * options.layers / whole:5.0%}")
        for x in subjects:
            print(f"{x.name:15} {x.first:16.2f}  {'  '.join(x.cells)}", flush=True)


class Subject:
    """A model with one implementation of attention."""

    def __init__(self, kind, implementation, options):
        self.name = implementation
        self.cells = []
        self.model = make_model(kind, implementation, options)
        self.tokens = torch.randint(4096, (1, options.tokens),
                                    device=options.device)
        self.function, self.operands = attention_of(
            kind, implementation, self.model.config, options)
        self.first, _ = first(self.prefill, options)
        self.attend()
        self.trains = True
        try:
            self.train()
            self.step()
        except NotImplementedError:  # PyTorch's FlexAttention on a CPU.
            self.trains = False

    def prefill(self):
        with torch.no_grad():
            return self.model(self.tokens, logits_to_keep=1).logits

    def train(self):
        self.model.zero_grad(set_to_none=True)
        self.model(self.tokens, labels=self.tokens).loss.backward()

    def attend(self):
        """The attention of a layer alone."""
        return self.function(*self.operands)

    def step(self):
        """The same with gradients."""
        operands = [x.detach().requires_grad_() for x in self.operands]
        output = self.function(*operands)
        torch.autograd.grad(output, operands, torch.ones_like(output))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", nargs="+", default=("mods", "models"),
                        choices=("mods", "models"))
    parser.add_argument("--device", choices=("cpu", "cuda"),
                        default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=DTYPES)
    parser.add_argument("--shape")
    parser.add_argument("--mods", nargs="+", choices=MODS)
    parser.add_argument("--models", nargs="+", default=("llama",),
                        choices=("llama", "gemma", "gpt_oss"))
    parser.add_argument("--implementations", nargs="+",
                        default=("fovea", "sdpa", "flex_attention"))
    parser.add_argument("--layers", type=int)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
        fovea.set_num_threads(options.threads)
    on_gpu = options.device == "cuda"
    defaults = dict(dtype="bf16" if on_gpu else "f32",
                    shape="4x16x4096x128" if on_gpu else "1x8x1024x64",
                    layers=8 if on_gpu else 2, hidden=4096 if on_gpu else 512,
                    tokens=8192 if on_gpu else 1024)
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    print(f"{torch.cuda.get_device_name() if on_gpu else 'CPU'}, PyTorch "
          f"{torch.__version__}, {torch.get_num_threads()} threads")
    torch.manual_seed(0)
    if "mods" in options.part:
        run_mods(options)
    if "models" in options.part:
        run_models(options)


if __name__ == "__main__":
    main()
