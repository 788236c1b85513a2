// RUN: fovea-opt --attn-partition-gradient --split-input-file \
// RUN:   --verify-diagnostics %s

// expected-error@+1 {{'func.func' op cannot be split: the name @f_backward is taken}}
func.func @f_gradient(%x: tensor<4xf32>, %d: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) attributes {attn.joint = array<i64: 1, 1>} {
  return %x, %d : tensor<4xf32>, tensor<4xf32>
}
func.func private @f_backward()

// -----

// expected-error@+1 {{expects 'attn.joint' to be an array of two i64, but it is 1 : i64}}
func.func private @f_gradient() attributes {attn.joint = 1}

// -----

// expected-error@+1 {{expects 'attn.joint' to count some of 0 operands and 0 results, but it is array<i64: 1, 0>}}
func.func private @f_gradient() attributes {attn.joint = array<i64: 1, 0>}

// -----

// expected-error@+1 {{expects 'attn.joint' only on a function}}
module attributes {attn.joint = array<i64: 1, 0>} {}

// -----

// expected-error@+1 {{has the attribute "attn.joints", which the attn dialect does not know}}
func.func private @f_gradient() attributes {attn.joints = array<i64: 1, 0>}
