// RUN: fovea-opt %s --split-input-file --verify-diagnostics

func.func @heads(%q: tensor<1x8x4x64xf16>, %k: tensor<1x2x6x64xf16>, %s: tensor<2xf32>) {
  // expected-error@+1 {{expects the initial log-sum-exp to have the number of heads of the output, 8, but it is 'tensor<2xf32>'}}
  %o = attn.attention %q, %k, %k scale(0.125) init(%s : tensor<2xf32>) : tensor<1x8x4x64xf16>, tensor<1x2x6x64xf16>, tensor<1x2x6x64xf16> -> tensor<1x8x4x64xf16>
  return
}

// -----

func.func @queries(%q: tensor<1x8x4x64xf16>, %k: tensor<1x2x6x64xf16>, %s: tensor<8x5xf32>) {
  // expected-error@+1 {{expects the initial log-sum-exp to have the number of queries of the output, 4, but it is 'tensor<8x5xf32>'}}
  %o = attn.attention %q, %k, %k scale(0.125) init(%s : tensor<8x5xf32>) : tensor<1x8x4x64xf16>, tensor<1x2x6x64xf16>, tensor<1x2x6x64xf16> -> tensor<1x8x4x64xf16>
  return
}

// -----

func.func @batch(%q: tensor<1x8x4x64xf16>, %k: tensor<1x2x6x64xf16>, %s: tensor<2x8x4xf32>) {
  // expected-error@+1 {{expects the initial log-sum-exp to have the batch size of the output, 1, but it is 'tensor<2x8x4xf32>'}}
  %o = attn.attention %q, %k, %k scale(0.125) init(%s : tensor<2x8x4xf32>) : tensor<1x8x4x64xf16>, tensor<1x2x6x64xf16>, tensor<1x2x6x64xf16> -> tensor<1x8x4x64xf16>
  return
}

// -----

func.func @type(%q: tensor<1x8x4x64xf64>, %k: tensor<1x2x6x64xf64>, %s: tensor<8xf32>) {
  // expected-error@+1 {{expects the initial log-sum-exp to have element type 'f64', but it is 'tensor<8xf32>'}}
  %o = attn.attention %q, %k, %k scale(0.125) init(%s : tensor<8xf32>) : tensor<1x8x4x64xf64>, tensor<1x2x6x64xf64>, tensor<1x2x6x64xf64> -> tensor<1x8x4x64xf64>
  return
}

// -----

func.func @rank(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %s: tensor<1x8x4x64xf32>) {
  // expected-error@+1 {{operand #3 must be 1D/2D/3D tensor of 32-bit float or 64-bit float values, but got 'tensor<1x8x4x64xf32>'}}
  %o = attn.attention %q, %k, %k scale(0.125) init(%s : tensor<1x8x4x64xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

func.func @output(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %o0: tensor<1x8x4x32xf32>, %l0: tensor<1x8x4xf32>) {
  // expected-error@+1 {{expects the initial output and output to have the same shape, but they are 'tensor<1x8x4x32xf32>' and 'tensor<1x8x4x64xf32>'}}
  %o = attn.attention %q, %k, %k scale(0.125) init(%o0, %l0 : tensor<1x8x4x32xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

func.func @missing_type(%q: tensor<1x8x4x64xf32>, %o0: tensor<1x8x4x64xf32>, %l0: tensor<1x8x4xf32>) {
  // expected-error@+1 {{expected ','}}
  %o = attn.attention %q, %q, %q scale(0.125) init(%o0, %l0 : tensor<1x8x4x64xf32>) : tensor<1x8x4x64xf32>, tensor<1x8x4x64xf32>, tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

func.func @when(%acc: tensor<1x8x4x64xf32>, %row: tensor<1x8x4xf32>, %w: i1) {
  // expected-error@+1 {{expects `when` only beside `init`}}
  %o = attn.finalize ins(%acc, %row, %row : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) when(%w) outs(%acc : tensor<1x8x4x64xf32>) -> tensor<1x8x4x64xf32>
  return
}

// -----

func.func @finalize(%acc: tensor<1x8x4x64xf32>, %row: tensor<1x8x4xf32>, %s: tensor<7xf32>) {
  // expected-error@+1 {{expects the initial log-sum-exp to have the number of heads of the output, 8, but it is 'tensor<7xf32>'}}
  %o = attn.finalize ins(%acc, %row, %row : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) init(%s : tensor<7xf32>) outs(%acc : tensor<1x8x4x64xf32>) -> tensor<1x8x4x64xf32>
  return
}

// -----

func.func @finalize_rank(%acc: tensor<1x8x4x64xf32>, %row: tensor<1x8x4xf32>) {
  // expected-error@+1 {{expects the initial log-sum-exp to have rank 1, 2 or 3, but it is 'tensor<1x8x4x64xf32>'}}
  %o = attn.finalize ins(%acc, %row, %row : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) init(%acc : tensor<1x8x4x64xf32>) outs(%acc : tensor<1x8x4x64xf32>) -> tensor<1x8x4x64xf32>
  return
}
