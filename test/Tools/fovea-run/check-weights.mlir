// Weights are rounded to the type of the values that they multiply, where that
// is a type of tensor cores; products of queries and keys are not.

// RUN: fovea-run %s --entry=attend --random=1 --check --target=sm_90a --simulate | FileCheck %s --check-prefix=ROUNDED
// RUN: fovea-run %s --entry=attend --random=1 --check | FileCheck %s --check-prefix=ROUNDED
// RUN: fovea-run %s --entry=values --random=1 --check | FileCheck %s --check-prefix=ROUNDED
// RUN: fovea-run %s --entry=grouped --random=1 --check | FileCheck %s --check-prefix=ROUNDED
// ROUNDED: check: result 0: max error {{.*}} (bound 0.032){{$}}

// RUN: fovea-run %s --entry=scores --random=1 --check | FileCheck %s --check-prefix=EXACT
// RUN: fovea-run %s --entry=squares --random=1 --check | FileCheck %s --check-prefix=EXACT
// EXACT: check: result 0: max error {{.*}} (bound 2e-05){{$}}

func.func @attend(%q: tensor<1x4x33x32xbf16>, %k: tensor<1x2x40x32xbf16>, %v: tensor<1x2x40x32xbf16>) -> tensor<1x4x33x32xf32> {
  %o = attn.attention %q, %k, %v scale(0.25) : tensor<1x4x33x32xbf16>, tensor<1x2x40x32xbf16>, tensor<1x2x40x32xbf16> -> tensor<1x4x33x32xf32>
  return %o : tensor<1x4x33x32xf32>
}

func.func @values(%p: tensor<1x4x33x40xf32>, %v: tensor<1x2x40x32xbf16>) -> tensor<1x4x33x32xf32> {
  %o = attn.values %p, %v : tensor<1x4x33x40xf32>, tensor<1x2x40x32xbf16> -> tensor<1x4x33x32xf32>
  return %o : tensor<1x4x33x32xf32>
}

#weight = affine_map<(h, i, d, j) -> (h, i, j)>
#value = affine_map<(h, i, d, j) -> (h floordiv 2, j, d)>
#output = affine_map<(h, i, d, j) -> (h, i, d)>
func.func @grouped(%p: tensor<4x33x40xf32>, %v: tensor<2x40x32xbf16>, %zero: tensor<4x33x32xf32>) -> tensor<4x33x32xf32> {
  %o = linalg.generic {indexing_maps = [#weight, #value, #output], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%p, %v : tensor<4x33x40xf32>, tensor<2x40x32xbf16>) outs(%zero : tensor<4x33x32xf32>) {
  ^bb0(%x: f32, %y: bf16, %sum: f32):
    %wide = arith.extf %y : bf16 to f32
    %product = arith.mulf %x, %wide : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x33x32xf32>
  return %o : tensor<4x33x32xf32>
}

func.func @scores(%q: tensor<1x4x33x32xbf16>, %k: tensor<1x2x40x32xbf16>) -> tensor<1x4x33x40xf32> {
  %s = attn.scores %q, %k : tensor<1x4x33x32xbf16>, tensor<1x2x40x32xbf16> -> tensor<1x4x33x40xf32>
  return %s : tensor<1x4x33x40xf32>
}

// A sum over two tensors that multiplies none by the other.
#row = affine_map<(i, j) -> (i, j)>
#sum = affine_map<(i, j) -> (i)>
func.func @squares(%x: tensor<8x40xbf16>, %mean: tensor<8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
  %o = linalg.generic {indexing_maps = [#row, #sum, #sum], iterator_types = ["parallel", "reduction"]} ins(%x, %mean : tensor<8x40xbf16>, tensor<8xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%a: bf16, %b: f32, %sum: f32):
    %wide = arith.extf %a : bf16 to f32
    %distance = arith.subf %wide, %b : f32
    %square = arith.mulf %distance, %distance : f32
    %next = arith.addf %sum, %square : f32
    linalg.yield %next : f32
  } -> tensor<8xf32>
  return %o : tensor<8xf32>
}
