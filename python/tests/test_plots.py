# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What can be seen of a mask and of a report: tiles, rooflines, notebooks."""

import re

import pytest

torch = pytest.importorskip("torch", "2.11")

import fovea
from torch.nn.attention.flex_attention import create_block_mask


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def test_tiles():
    """Of a causal mask, of lengths that tiles do not divide."""
    found = fovea.find_tiles(causal, 10, 7, 4)
    assert found.tolist() == [[1, 0], [2, 1], [2, 2]]
    assert fovea.find_tiles(causal, 8, 8, (4, 2)).tolist() == [
        [1, 1, 0, 0], [2, 2, 1, 1]]


@pytest.mark.parametrize("most", [1, 1 << 24])
def test_tiles_of_captured_tensors(monkeypatch, most):
    """Of one batch and head, in bands and at once, against the mask itself."""
    monkeypatch.setattr("fovea._plots._MOST", most)
    lengths = torch.tensor([3, 50])

    def mask(b, h, q_idx, kv_idx):
        return (kv_idx < lengths[b]) & (q_idx - kv_idx < 20 - h)

    keep = fovea.create_mask(mask, 2, 4, 64, 64, device="cpu")[1, 3]
    tiles = keep.unflatten(0, (8, 8)).unflatten(2, (4, 16)).transpose(1, 2)
    expected = tiles.flatten(2).any(-1).int() + tiles.flatten(2).all(-1).int()
    found = fovea.find_tiles(mask, 64, 64, (8, 16), batch=1, head=3)
    assert found.tolist() == expected.tolist()
    assert len({*expected.flatten().tolist()}) == 3


def test_tiles_of_a_block_mask():
    block_mask = create_block_mask(causal, None, None, 256, 256, device="cpu")
    assert fovea.find_tiles(block_mask, 256, 256).tolist() == [[1, 0], [2, 1]]


@pytest.mark.parametrize("arguments, kind, message", [
    ((3, 8, 8), TypeError, "mask_mod: expected a function or a BlockMask, got int"),
    ((causal, 0, 8), ValueError, "queries: expected 1 or more, got 0"),
    ((causal, 8, 8, 0), ValueError, "tile: expected 1 or more, got 0"),
])
def test_errors_of_tiles(arguments, kind, message):
    with pytest.raises(kind, match=message):
        fovea.find_tiles(*arguments)


def use_no_screen():
    pytest.importorskip("matplotlib").use("Agg")


def test_plot_mask():
    use_no_screen()
    ax = fovea.plot_mask(causal, 10, 7, 4)
    assert ax.get_title() == "tiles of 4 x 4: 83% computed"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "empty: 17%", "partial: 33%", "whole: 50%"]
    assert ax.images[0].get_array().tolist() == [[1, 0], [2, 1], [2, 2]]
    assert ax.get_xlim() == (0, 7) and ax.get_ylim() == (10, 0)
    assert fovea.plot_mask(causal, 8, 8, ax=ax) is ax


REPORT = {
    "machine": "a machine", "bandwidth": 1e10, "peak_f32": 1e11, "peak_f64": 0,
    "peak_matrix": 4e11, "strategies": {
        "fused": {"flops": 2e9, "intensity": 50.0, "measured_seconds": 0.1},
        "unfused": {"flops": 2e9, "intensity": 5.0, "measured_seconds": 0.5},
        "two-pass": {"flops": 2e9, "intensity": 5.0}}}


def test_plot_roofline():
    use_no_screen()
    ax = fovea.plot_roofline(fovea.Report(REPORT))
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["fused"] == [[50.0, 20.0]] and lines["unfused"] == [[5.0, 4.0]]
    assert "two-pass" not in lines
    # The two roofs, with their ridges.
    roofs = [line.get_xydata().tolist() for line in ax.lines[:2]]
    assert [roof[1] for roof in roofs] == [[10.0, 100.0], [40.0, 400.0]]
    assert [text.get_text() for text in ax.texts] == ["f32: 100", "matrix: 400"]
    with pytest.raises(TypeError, match="report: expected a Report or an Exp"):
        fovea.plot_roofline(3)
    with pytest.raises(fovea.Error, match="expected a strategy that was measured"):
        fovea.plot_roofline({**REPORT, "strategies": {}})


def test_notebooks():
    """Functions, kernels, explanations and reports have an HTML of their own."""
    q = torch.randn(1, 2, 8, 16)
    found = fovea.explain(fovea.attention, q, q, q, causal=True)
    text = found._repr_html_()
    assert text == found.kernels[0]._repr_html_()
    assert re.findall("<summary>(.*?)</summary>", text) == ["fused", "tiled"]
    assert "attn.attention" in text and "scf.forall" in text
    assert "&lt;forward: &lt;fovea.Function @attention(" in text
    assert "tensor&lt;?x2x?x16xf32&gt;" in found.function._repr_html_()
    assert fovea.explain(abs, 1)._repr_html_() == "<p>no kernels</p>"
    assert fovea.Report(text="a < b")._repr_html_() == "<pre>a &lt; b</pre>"
