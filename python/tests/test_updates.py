# Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that a function updates in place."""

import numpy as np
import pytest

import fovea

#: Adds rows to those of a cache at some places, and sums the rows of all that.
ADD = """
#rows = affine_map<(i, d) -> (i, d)>
#sums = affine_map<(i, d) -> (i)>
#row = affine_map<(d) -> (d)>
func.func @add(%cache: tensor<?x8xf32> {bufferization.writable = true},
               %rows: tensor<?x8xf32>, %places: tensor<?xi32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %count = tensor.dim %rows, %c0 : tensor<?x8xf32>
  %size = tensor.dim %cache, %c0 : tensor<?x8xf32>
  %new = scf.forall (%i) in (%count) shared_outs(%out = %cache) -> tensor<?x8xf32> {
    %number = tensor.extract %places[%i] : tensor<?xi32>
    %at = arith.index_cast %number : i32 to index
    %row = tensor.extract_slice %rows[%i, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<8xf32>
    %old = tensor.extract_slice %out[%at, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<8xf32>
    %sum = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
        ins(%row : tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
    } -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %out[%at, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<?x8xf32>
    }
  }
  %room = tensor.empty(%size) : tensor<?xf32>
  %start = linalg.fill ins(%zero : f32) outs(%room : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%new : tensor<?x8xf32>) outs(%start : tensor<?xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<?xf32>
  return %sums : tensor<?xf32>
}
"""


@pytest.fixture(scope="module")
def add():
    return fovea.compile(ADD)


def make_operands():
    cache = np.arange(48, dtype=np.float32).reshape(6, 8)
    return cache, np.ones((2, 8), np.float32), np.array([4, 1], np.int32)


def check(add, *operands):
    """Calls with NumPy arrays, or PyTorch tensors of their memory."""
    cache, rows, places = (x if isinstance(x, np.ndarray) else x.numpy()
                           for x in operands)
    wanted = cache.copy()
    wanted[places] += rows
    found = add(*operands)
    np.testing.assert_array_equal(cache, wanted)
    np.testing.assert_allclose(
        found if isinstance(found, np.ndarray) else found.numpy(), wanted.sum(1))


def test_signature(add):
    assert [x.is_writable for x in add.operands] == [True, False, False]


@pytest.mark.parametrize("options", [{}, {"check_bounds": True},
                                     {"strategy": "unfused"}])
def test_arrays(options):
    """Elements are added once, whatever runs besides."""
    check(fovea.compile(ADD, **options), *make_operands())


def test_views(add):
    """Rows may lie apart; the memory between them stays as it is."""
    whole = np.zeros((6, 24), np.float32)
    check(add, whole[:, 8:16], *make_operands()[1:])
    assert not whole[:, :8].any() and not whole[:, 16:].any()
    check(add, whole[::-2, 8:16], np.ones((1, 8), np.float32),
          np.array([2], np.int32))


def test_no_elements(add):
    _, rows, places = make_operands()
    assert add(np.zeros((0, 8), np.float32), rows[:0], places[:0]).shape == (0,)


def test_report_leaves_operands(add):
    operands = make_operands()
    add.report(*operands)
    np.testing.assert_array_equal(operands[0], make_operands()[0])


def freeze(cache):
    cache.flags.writeable = False
    return cache


@pytest.mark.parametrize("change, message", [
    (freeze, "expected an array that may be written"),
    (lambda x: np.asfortranarray(x), "along the last dimension"),
    (lambda x: np.lib.stride_tricks.as_strided(x, (6, 8), (0, 4)),
     "expected elements that share no memory"),
    (lambda x: x.astype(">f4"), "a NumPy array or a PyTorch tensor that is used "
     "where it is"),
    (lambda x: memoryview(x), "expected a NumPy array"),
    (lambda x: np.frombuffer(b"0" + x.tobytes() + b"000", np.uint8)[1:-3].copy()
     .view(np.float32).reshape(6, 8)[:, :4], "expected f32 tensor of shape")])
def test_errors(add, change, message):
    cache, rows, places = make_operands()
    with pytest.raises(fovea.Error, match=message):
        add(change(cache), rows, places)
    np.testing.assert_array_equal(cache, make_operands()[0])


class TestTorch:
    @pytest.fixture(scope="class")
    def torch(self):
        return pytest.importorskip("torch")

    def test_tensors(self, add, torch):
        check(add, *map(torch.from_numpy, make_operands()))

    def test_versions(self, add, torch):
        """Autograd refuses a gradient that needs the old elements."""
        cache, rows, places = map(torch.from_numpy, make_operands())
        factor = torch.ones(6, 8, requires_grad=True)
        product = (factor * cache).sum()
        version = cache._version
        add(cache, rows, places)
        assert cache._version == version + 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()

    def test_inference(self, add, torch):
        with torch.inference_mode():
            check(add, *(torch.from_numpy(x) for x in make_operands()))

    def test_errors(self, add, torch):
        cache, rows, places = map(torch.from_numpy, make_operands())
        for wrong, message in ((cache.t().contiguous().t(), "along the last dimension"),
                               (cache[:1].expand(6, 8), "share no memory")):
            before = wrong.clone()
            with pytest.raises(fovea.Error, match=r"operand 0 \(%cache\) of @add: it "
                                                  f"is updated in place.*{message}"):
                add(wrong, rows, places)
            assert torch.equal(wrong, before)


def test_old_elements_are_read():
    """One that is read after its update has no place to be in."""
    text = """
func.func @f(%x: tensor<4xf32> {bufferization.writable = true}, %y: tensor<2xf32>)
    -> tensor<4xf32> {
  %new = tensor.insert_slice %y into %x[1] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %room = tensor.empty() : tensor<4xf32>
  %sum = linalg.add ins(%new, %x : tensor<4xf32>, tensor<4xf32>)
      outs(%room : tensor<4xf32>) -> tensor<4xf32>
  return %sum : tensor<4xf32>
}"""
    with pytest.raises(fovea.Error, match="updates operand 0 of @f, which is "
                                          "writable, but its elements from before"):
        fovea.compile(text)
