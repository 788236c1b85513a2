// RUN: fovea-opt %s --outline-shape-checks --verify-diagnostics --split-input-file

// A table that is too short for every operand.
func.func @table(%s: tensor<1x4x8x8xf32>, %slopes: tensor<3xf32>) -> tensor<1x4x8x8xf32> {
  
  // expected-error @below {{in @table: dimension 0 of operand 1 is 3, expected at least 4, which is what its indices in 'tensor.extract' need, for 'attn.modify'}}
  %r = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %slopes[%h] : tensor<3xf32>
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  } : tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// -----

// An index that goes below zero, also where the score is masked afterwards.
func.func @negative(%s: tensor<1x1x8x8xf32>, %table: tensor<8xf32>) -> tensor<1x1x8x8xf32> {
  // expected-error @below {{in @negative: the least index into dimension 0 of operand 1 is -7, expected at least 0, which is the first, for 'attn.modify'}}
  %r = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = tensor.extract %table[%d] : tensor<8xf32>
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  } : tensor<1x1x8x8xf32>
  return %r : tensor<1x1x8x8xf32>
}

// -----

// 2^64 elements would look like none.
func.func @overflow() -> tensor<4611686018427387904x4xf32> {
  // expected-error @below {{'tensor.empty' op has a result 0 whose size does not fit 64 bits: 'tensor<4611686018427387904x4xf32>'}}
  %e = tensor.empty() : tensor<4611686018427387904x4xf32>
  return %e : tensor<4611686018427387904x4xf32>
}

// -----

// One key more than there may be.
func.func @keys(%q: tensor<1x1x8x16xf32>, %k: tensor<1x1x1073741825x16xf32>) -> tensor<1x1x8x16xf32> {
  // expected-error @below {{in @keys: dimension 2 of operand 1 is 1073741825, expected at most 1073741824, which is the largest size of attention, for 'attn.attention'}}
  %o = attn.attention %q, %k, %k scale(1.0) : tensor<1x1x8x16xf32>, tensor<1x1x1073741825x16xf32>, tensor<1x1x1073741825x16xf32> -> tensor<1x1x8x16xf32>
  return %o : tensor<1x1x8x16xf32>
}
