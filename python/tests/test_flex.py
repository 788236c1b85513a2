# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flex_attention against PyTorch's math in f64: mods, gradients, layouts,
types, and PyTorch's errors."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
import mods
from mods import (BATCH, DEVICE, HEADS, LENGTH, make_qkv, on_device, randn,
                  reference)
from torch.nn.attention.flex_attention import (BlockMask, create_block_mask,
                                               noop_mask)

# Relative to the largest magnitude.
BOUND = 5e-6


def compare(actual, expected, bound=BOUND):
    assert actual.shape == expected.shape
    expected = expected.detach()
    if not expected.numel():
        return
    finite = torch.isfinite(expected)
    assert torch.equal(actual.detach()[~finite].double(), expected[~finite])
    if finite.any():
        error = (actual.double() - expected)[finite].abs().max()
        error = error / expected[finite].abs().max().clamp(min=1)
        assert error <= bound, float(error)


def tensors_of(mod):
    """The tensors that a mod's closure holds and that want a gradient."""
    cells = [cell.cell_contents for cell in mod.__closure__ or ()]
    return [x for x in cells if isinstance(x, torch.Tensor) and x.requires_grad]


def check_gradients(inputs, actual, expected, bound=2e-5):
    """Compares gradients of outputs and log-sum-exps."""
    weights = [randn(*x.shape, seed=at) for at, x in enumerate(actual)]
    found, wanted = (
        torch.autograd.grad(sum((torch.where(torch.isfinite(x), x, 0) * w).sum()
                                for x, w in zip(results, weights)), inputs)
        for results in (actual, expected))
    for one, other, tensor in zip(found, wanted, inputs):
        assert one.dtype == tensor.dtype
        compare(one, other.double(), bound)


@pytest.mark.parametrize("name", mods.MASKS)
def test_mask(name):
    """The output and the log-sum-exp; and the mask decides something."""
    q, k, v = make_qkv()
    mod = mods.MASKS[name]()
    output, lse = fovea.flex_attention(q, k, v, block_mask=mod, return_lse=True)
    expected, expected_lse, _ = reference(q, k, v, None, mod)
    compare(output, expected)
    compare(lse, expected_lse)
    assert (expected - reference(q, k, v)[0]).abs().max() > 0.01


@pytest.mark.parametrize("name", mods.SCORES)
def test_score(name):
    """Gradients of the operands and of all captured tensors, too."""
    q, k, v = make_qkv(grad=True)
    mod = mods.SCORES[name]()
    actual = fovea.flex_attention(q, k, v, mod, return_lse=True)
    expected = reference(q, k, v, mods.plain(mod))[:2]
    compare(actual[0], expected[0])
    compare(actual[1], expected[1])
    check_gradients([q, k, v, *tensors_of(mod)], actual, expected)
    assert (expected[0] - reference(q, k, v)[0]).abs().max() > 0.01


def bias_and_window():
    bias = randn(HEADS, LENGTH, seed=5).requires_grad_()
    return (lambda score, b, h, q, kv: score * 0.5 + bias[h, kv],
            lambda b, h, q, kv: (q >= kv) & (q - kv < 9) & (q != 4))


@pytest.mark.parametrize("form", ["block_mask", "mask_mod", "function", "both"])
def test_masks_and_scores(form):
    q, k, v = make_qkv(grad=True)
    score_mod, mask_mod = bias_and_window()
    arguments = {
        "block_mask": lambda: {"block_mask": create_block_mask(
            mask_mod, None, None, LENGTH, LENGTH, device=DEVICE)},
        "mask_mod": lambda: {"mask_mod": mask_mod},
        "function": lambda: {"block_mask": mask_mod},
        "both": lambda: {"block_mask": mods.causal_mask, "mask_mod":
                         lambda b, h, q, kv: (q - kv < 9) & (q != 4)},
    }[form]()
    actual = fovea.flex_attention(q, k, v, score_mod, **arguments,
                                  return_aux=fovea.AuxRequest(lse=True))
    expected = reference(q, k, v, score_mod, mask_mod)[:2]
    compare(actual[0], expected[0])
    compare(actual[1].lse, expected[1])
    assert actual[1].max_scores is None
    assert (actual[0][:, :, 4] == 0).all()
    assert (actual[1].lse[:, :, 4] == -math.inf).all()
    check_gradients([q, k, v, *tensors_of(score_mod)],
                    (actual[0], actual[1].lse), expected)


def test_block_table():
    """A BlockMask without a mask_mod is its table."""
    table = torch.tensor([[1, 0, 0], [0, 1, 1], [1, 0, 1]]).bool()
    count = table.sum(-1, dtype=torch.int32)
    order = torch.argsort(table.int(), dim=-1, descending=True, stable=True).int()
    block_mask = BlockMask.from_kv_blocks(
        count[None, None], order[None, None], BLOCK_SIZE=16, seq_lengths=(40, 40))
    q, k, v = make_qkv(40, 40)
    actual = fovea.flex_attention(q, k, v, block_mask=block_mask)
    compare(actual, reference(
        q, k, v, None, lambda b, h, q, kv: table[q // 16, kv // 16])[0])
    # No table where it is full.
    full = create_block_mask(noop_mask, 1, 1, 40, 40, device=DEVICE,
                             BLOCK_SIZE=16)
    found = fovea.explain(fovea.flex_attention, q, k, v, block_mask=full)
    assert len(found.operands) == 3


@pytest.mark.parametrize("queries, keys", [(1, 77), (77, 1), (31, 45), (5, 0),
                                           (0, 5)])
def test_lengths(queries, keys):
    """One text for all lengths."""
    q, k, v = make_qkv(queries, keys, grad=True)
    actual = fovea.flex_attention(q, k, v, mask_mod=mods.causal_mask,
                                  return_lse=True)
    expected = (reference(q, k, v, None, mods.causal_mask)[:2] if keys and queries
                else (torch.zeros(q.shape).double(),
                      torch.full(q.shape[:3], -math.inf).double()))
    compare(actual[0], expected[0])
    compare(actual[1], expected[1])
    if queries and keys:
        check_gradients([q, k, v], actual, expected)


def test_integers_that_change():
    """A number of Python that changes from call to call becomes an operand,
    after a few; one that does not stays a constant."""
    from fovea import _operator

    def run(position, stride):
        q, k, v = make_qkv(5, 40)
        score_mod = lambda score, b, h, q, kv: score + (kv - q) % stride
        mask_mod = lambda b, h, q, kv: q + position >= kv
        found = fovea.explain(fovea.flex_attention, q, k, v, score_mod,
                              mask_mod=mask_mod)
        compare(found.result, reference(q, k, v, score_mod, mask_mod)[0])
        return found.kernels[0].operands[3:]

    for position in range(10, 13):
        assert not run(position, 7)
    assert len(run(13, 7)) == 1
    before = len(_operator._forwards)
    for position in (14, 3, 39, 2**40, -3):
        assert len(run(position, 7)) == 1
    assert not run(11, 7)
    assert len(_operator._forwards) == before
    assert len(run(4, 5)) == len(run(4, 9)) == 2
    assert len(_operator._forwards) == before + 1


def test_lengths_compile_once():
    from fovea import _operator
    bias = randn(300)

    def run(length):
        q, k, v = make_qkv(length, length + 1)
        return fovea.flex_attention(
            q, k, v, lambda score, b, h, q, kv: score + bias[q] * bias[kv],
            mask_mod=mods.causal_mask)

    def is_counted(length):
        """Few queries, of a step of decoding, have kernels of their own."""
        return length <= (16 if DEVICE == "cuda" else 1)

    run(20)
    before = len(_operator._forwards)
    lengths = (1, 2, 11, 100, 1, 17)
    for length in lengths:
        run(length)
    assert len(_operator._forwards) == before + len(
        {length for length in lengths if is_counted(length)})


@pytest.mark.parametrize("heads, kv_heads, dim, value_dim", [
    (8, 2, 24, 40), (6, 3, 17, 17), (4, 1, 64, 8)])
def test_grouped_heads_and_head_sizes(heads, kv_heads, dim, value_dim):
    q, k, v = make_qkv(13, 21, heads=heads, kv_heads=kv_heads, dim=dim,
                       value_dim=value_dim, grad=True)
    mod = lambda score, b, h, q, kv: score + h
    actual = fovea.flex_attention(q, k, v, mod, enable_gqa=True, scale=0.3,
                                  return_lse=True)
    expected = reference(q, k, v, mod, scale=0.3)[:2]
    compare(actual[0], expected[0])
    compare(actual[1], expected[1])
    check_gradients([q, k, v], actual, expected)


@pytest.mark.parametrize("dtype, bound", [
    (torch.float16, 1e-3), (torch.bfloat16, 8e-3), (torch.float64, 1e-13)])
def test_types(dtype, bound):
    q, k, v = make_qkv(dtype=dtype, grad=True)
    score_mod, mask_mod = bias_and_window()
    output, lse = fovea.flex_attention(q, k, v, score_mod, mask_mod,
                                       return_lse=True)
    expected = reference(q, k, v, score_mod, mask_mod)
    assert output.dtype == dtype
    assert lse.dtype == (dtype if dtype == torch.float64 else torch.float32)
    compare(output, expected[0], bound)
    compare(lse, expected[1], 1e-13 if dtype == torch.float64 else BOUND)
    check_gradients([q, k, v], (output, lse), expected[:2], 4 * bound)


def test_types_that_differ():
    q, k, v = make_qkv()
    k, v = k.bfloat16(), v.bfloat16()
    compare(fovea.flex_attention(q, k, v), reference(q, k, v)[0])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 1, 0, 3),
                                   (1, 2, 0, 3), (3, 1, 2, 0)])
def test_strides(order):
    """The output has the query's order of strides, gradients their tensors'."""
    inverse = [order.index(at) for at in range(4)]
    inputs = [x.permute(order).contiguous().permute(inverse).requires_grad_()
              for x in make_qkv(9, 9)]
    output = fovea.flex_attention(*inputs, mask_mod=mods.causal_mask)
    assert output.stride() == inputs[0].stride()
    expected = reference(*inputs, None, mods.causal_mask)[0]
    compare(output, expected)
    for one, other, tensor in zip(
            torch.autograd.grad(output.sum(), inputs),
            torch.autograd.grad(expected.sum(), inputs), inputs):
        compare(one, other.double(), 2e-5)
        assert one.stride() == tensor.stride()


def test_one_batch_of_keys():
    """Keys and values of one batch serve all, if there is a mask."""
    q, _, _ = make_qkv(grad=True)
    _, k, v = make_qkv(batch=1, grad=True)
    block_mask = create_block_mask(mods.causal_mask, BATCH, None, LENGTH, LENGTH,
                                   device=DEVICE)
    actual = fovea.flex_attention(q, k, v, block_mask=block_mask)
    expected = reference(q, k, v, None, mods.causal_mask)[0]
    compare(actual, expected)
    check_gradients([q, k, v], (actual,), (expected,))
    with pytest.raises(ValueError, match="or non-none block_mask, but got"):
        fovea.flex_attention(q, k, v)


@pytest.mark.parametrize("memory", [1 << 26, 3000])
def test_largest_scores(memory, monkeypatch):
    """At once, and some queries at a time."""
    monkeypatch.setattr("fovea._flex._MAX_SCORES", memory)
    q, k, v = make_qkv()
    score_mod, mask_mod = bias_and_window()
    output, aux = fovea.flex_attention(
        q, k, v, score_mod, mask_mod,
        return_aux=fovea.AuxRequest(lse=True, max_scores=True))
    compare(aux.max_scores, reference(q, k, v, score_mod, mask_mod)[2])
    assert not aux.max_scores.requires_grad
    _, aux = fovea.flex_attention(q, k, v,
                                  return_aux=fovea.AuxRequest(max_scores=True))
    assert aux.lse is None
    compare(aux.max_scores, reference(q, k, v)[2])


@pytest.mark.parametrize("name", ["causal", "squared", "head_offset"])
def test_gradcheck(name):
    inputs = make_qkv(5, 4, batch=1, heads=2, dim=3, dtype=torch.float64,
                      grad=True)
    arguments = {"mask_mod": mods.causal_mask}
    if name in mods.SCORES:
        arguments["score_mod"] = mods.SCORES[name]()
    assert torch.autograd.gradcheck(
        lambda *x: fovea.flex_attention(*x, **arguments, return_lse=True),
        inputs)


def test_no_gradients_of_gradients():
    q, k, v = make_qkv(3, 3, grad=True)
    gradient, = torch.autograd.grad(fovea.flex_attention(q, k, v).sum(), q,
                                    create_graph=True)
    with pytest.raises(NotImplementedError, match="gradients of gradients"):
        gradient.sum().backward()


def test_dropout():
    q, k, v = make_qkv(grad=True)
    identity = torch.eye(LENGTH).expand(BATCH, HEADS, LENGTH, LENGTH)

    def run(seed, value):
        return fovea.flex_attention(
            q, k, value, dropout_p=0.25,
            generator=torch.Generator().manual_seed(seed))

    # With these values the output is the probabilities.
    kept = run(1, identity)
    assert torch.equal(kept, run(1, identity))
    assert not torch.equal(kept, run(2, identity))
    share = (kept == 0).float().mean()
    assert 0.2 < share < 0.3
    weights = torch.softmax(q.double() @ k.double().mT / 4, -1)
    compare(kept, torch.where(kept == 0, 0, weights / 0.75))
    mask = (kept != 0).double() / 0.75
    check_gradients([q, k, v], [run(1, v)], [(weights * mask) @ v.double()])
    torch.manual_seed(7)
    first = fovea.flex_attention(q, k, v, dropout_p=0.5)
    second = fovea.flex_attention(q, k, v, dropout_p=0.5)
    torch.manual_seed(7)
    assert torch.equal(first, fovea.flex_attention(q, k, v, dropout_p=0.5))
    assert not torch.equal(first, second)
    with pytest.raises(ValueError, match="dropout_p: expected a probability"):
        fovea.flex_attention(q, k, v, dropout_p=1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_gradients_of_what_requires_them(dtype):
    """A captured tensor that does not require a gradient has none computed."""
    q, k, v = make_qkv(grad=True)
    learned = randn(HEADS, LENGTH).requires_grad_()
    fixed = randn(LENGTH, LENGTH, seed=1).to(dtype)

    def mod(score, b, h, q, kv):
        return score * learned[h, kv] + fixed[q, kv]

    def step():
        output = fovea.flex_attention(q, k, v, mod)
        check_gradients([q, k, v, learned], (output,),
                        (reference(q, k, v, mod)[0],))
        compare(output, reference(q, k, v, mod)[0])

    forward, backward = fovea.explain(step).kernels
    assert len(backward.results) == 4
    # Without gradients the kernel reads floats.
    with torch.no_grad():
        found = fovea.explain(fovea.flex_attention, q, k, v, mod)
    compare(found.result, reference(q, k, v, mod)[0])
    assert found.kernels[0].operands[-1].dtype != forward.operands[-1].dtype


def test_changed_closures():
    """A mod is read at every call: closures, globals and tensors in place."""
    q, k, v = make_qkv()
    factor, bias = 2.0, torch.zeros(HEADS)

    def mod(score, b, h, q, kv):
        return score * factor + bias[h] * kv

    for factor in (2.0, 3.0):
        bias += 0.1
        compare(fovea.flex_attention(q, k, v, mod), reference(q, k, v, mod)[0])


def test_loaded_indices_are_clamped():
    """What data say is never read outside of a tensor."""
    table = randn(7)
    ids = torch.tensor([0, 6, 7, 99, 2_000_000_000, -1, -7, -8, -2**62])
    q, k, v = make_qkv(9, 9)
    actual = fovea.flex_attention(
        q, k, v, lambda score, b, h, q, kv: score + table[ids[kv]])
    # Negative ones count from the end first; -8 and less wrap to the last.
    inside = torch.tensor([0, 6, 6, 6, 6, 6, 0, 6, 6])
    compare(actual, reference(
        q, k, v, lambda score, b, h, q, kv: score + table[inside[kv]])[0])
    zeros = torch.tensor([3, 0, -1, 5, 0, -2**63, 1, 2, 3])
    fovea.flex_attention(q, k, v, lambda score, b, h, q, kv:
                         score + (zeros[q] // zeros[kv] + q % zeros[kv]) % 3)


def test_backends_and_options():
    q, k, v = make_qkv(5, 5)
    expected = reference(q, k, v)[0]
    for options in ({}, {"BACKEND": "TRITON", "BLOCK_M": 64, "fwd_num_warps": 4,
                         "PRESCALE_QK": True}):
        compare(fovea.flex_attention(q, k, v, kernel_options=options), expected)
    with pytest.raises(ValueError, match="Invalid BACKEND value 'CUDNN'"):
        fovea.flex_attention(q, k, v, kernel_options={"BACKEND": "CUDNN"})


def test_autocast():
    q, k, v = make_qkv()
    with torch.autocast(DEVICE, torch.bfloat16):
        output = fovea.flex_attention(q, k, v)
    assert output.dtype == torch.bfloat16
    compare(output, reference(q, k, v)[0], 2e-2)


@pytest.mark.parametrize("change, kind, message", [
    (lambda q, k, v: (q, k[:, :2], v[:, :2]), ValueError,
     r"same number of heads but got Hq=4 and Hkv=2. Try setting enable_gqa"),
    (lambda q, k, v: (q[0], k[0], v[0]), NotImplementedError,
     "NYI: query, key, and value must be 4D tensors"),
    (lambda q, k, v: (q, k[..., :8], v), ValueError,
     "same embedding dimension but got E=16 and E=8"),
    (lambda q, k, v: (q, k, v[:, :, :3]), ValueError,
     r"key and value .* value.shape=\(2, 4, 3, 16\)"),
    (lambda q, k, v: (q, k, v.cpu().numpy()), TypeError,
     "value: expected a tensor, got ndarray"),
    (lambda q, k, v: (q, k.long(), v), ValueError,
     "key: expected float16, bfloat16, float32 or float64, got torch.int64"),
    (lambda q, k, v: (q, k.to("meta"), v), ValueError,
     f"same device type, but got query.device: {DEVICE}(:0)?, key.device: meta"),
])
def test_errors_of_operands(change, kind, message):
    with pytest.raises(kind, match=message):
        fovea.flex_attention(*change(*make_qkv(5, 5)))


@pytest.mark.parametrize("options, kind, message", [
    ({"score_mod": 3}, TypeError, "score_mod: expected a function, got int"),
    ({"mask_mod": "no"}, TypeError, "mask_mod: expected a function, got str"),
    ({"kernel_options": 3}, TypeError, "kernel_options: expected a dict, got int"),
    ({"scale": math.inf}, ValueError, "scale: expected a finite number, got inf"),
    ({"score_mod": lambda s, b, h, i, j: np.tanh(s)}, fovea.TraceError,
     r"test_flex.py:\d+: a function of NumPy on a traced value; use torch's"),
])
def test_errors_of_options(options, kind, message):
    with pytest.raises(kind, match=message):
        fovea.flex_attention(*make_qkv(5, 5), **options)


def test_errors_of_masks():
    q, k, v = make_qkv(24, 24)
    small, large = (create_block_mask(mods.causal_mask, 1, 1, n, n, device=DEVICE,
                                      BLOCK_SIZE=16) for n in (16, 32))
    with pytest.raises(ValueError, match="created for a smaller length"):
        fovea.flex_attention(q, k, v, block_mask=small)
    with pytest.raises(ValueError, match="created for a larger length"):
        fovea.flex_attention(q, k, v, block_mask=large)
    with pytest.raises(RuntimeError, match="mask_mod from a sliced BlockMask"):
        fovea.flex_attention(q, k, v, block_mask=large[:, :, 0])
    with pytest.raises(TypeError, match="a BlockMask or a mask_mod, got Tensor"):
        fovea.flex_attention(q, k, v, block_mask=torch.ones(24, 24))
    with pytest.raises(ValueError, match="multiple of kv heads for GQA"):
        fovea.flex_attention(q, k[:, :3], v[:, :3], enable_gqa=True)
    with pytest.raises(ValueError, match="both return_lse and return_aux"):
        fovea.flex_attention(q, k, v, return_lse=True,
                             return_aux=fovea.AuxRequest(lse=True))


def test_explain():
    q, k, v = make_qkv(9, 9, grad=True)

    def step():
        fovea.flex_attention(q, k, v, mask_mod=mods.causal_mask).sum().backward()

    found = fovea.explain(step)
    assert [kernel.kind for kernel in found.kernels] == ["forward", "backward"]
    assert "attn.attention" in found.mlir()
    assert "attn.attention_backward" in found.kernels[1].mlir("fused")
    assert "scf.forall" in found.mlir("tiled")
    assert found.result is None
    assert "fovea.Function @attention_forward" in repr(found)
    with torch.no_grad():
        found = fovea.explain(fovea.flex_attention, q, k, v)
    assert found.result.shape == q.shape
    if DEVICE == "cpu":  # A report measures on the host.
        assert "fused" in str(found.report())
    attend = fovea.compile(fovea.trace(query=q, key=k, value=v),
                           target="host" if DEVICE == "cpu" else "gpu")
    found = fovea.explain(attend, *(x.detach() for x in (q, k, v)))
    assert found.kernels[0].function is attend
    with pytest.raises(fovea.Error, match="ran no kernel"):
        fovea.explain(torch.add, q, k).mlir()
