// RUN: fovea-opt --attn-differentiate --split-input-file --verify-diagnostics %s

func.func @taken(%x: tensor<4xf32>) -> tensor<4xf32> { // expected-error {{'func.func' op cannot be differentiated: the name @taken_gradient is taken}}
  return %x : tensor<4xf32>
}
func.func private @taken_gradient() // expected-note {{here}}

// -----

// expected-error@+1 {{'func.func' op cannot be differentiated: no result is a tensor of floating-point numbers}}
func.func @integers(%x: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<4xi32> {
  return %n : tensor<4xi32>
}

// -----

// expected-error@+1 {{'func.func' op cannot be differentiated: expected a body of one block, got 2}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next
^next:
  return %x : tensor<4xf32>
}

// -----

func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32>

func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'func.call' op has no derivative}}
  %y = call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @region(%x: tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %y = attn.modify %x {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.cmpi sgt, %i, %j : index
    // expected-error@+1 {{'scf.if' op has no derivative}}
    %r = scf.if %c -> f32 {
      %t = arith.mulf %s, %s : f32
      scf.yield %t : f32
    } else {
      scf.yield %s : f32
    }
    attn.yield %r : f32
  } : tensor<1x1x4x4xf32>
  return %y : tensor<1x1x4x4xf32>
}

// -----

func.func @product(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%one : f32) outs(%empty : tensor<4xf32>)
      -> tensor<4xf32>
  // expected-error@+1 {{'linalg.reduce' op has no derivative: its reduction is not a sum, a maximum or a minimum}}
  %y = linalg.reduce { arith.mulf } ins(%x : tensor<4x8xf32>)
      outs(%init : tensor<4xf32>) dimensions = [1]
  return %y : tensor<4xf32>
}

// -----

func.func @recurrence(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>)
      -> tensor<4xf32>
  // expected-error@+1 {{'linalg.generic' op has no derivative: what it adds depends on the sum so far}}
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %p = arith.mulf %a, %sum : f32
    %r = arith.addf %sum, %p : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @padding(%x: tensor<4xf32>) -> tensor<6xf32> {
  %c0 = arith.constant 0 : index
  %first = tensor.extract %x[%c0] : tensor<4xf32>
  // expected-error@+1 {{'tensor.pad' op has no derivative with respect to what it pads with}}
  %y = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %first : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

func.func @number(%q: tensor<1x1x4x4xf32>, %n: tensor<f32>)
    -> tensor<1x1x4x4xf32> {
  %a = tensor.extract %n[] : tensor<f32>
  // expected-error@+1 {{'attn.attention' op has no derivative: its score region captures a number that depends on operands, not a tensor}}
  %o = attn.attention %q, %q, %q scale(1.0)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %r = arith.mulf %s, %a : f32
        attn.yield %r : f32
      }
      : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>
        -> tensor<1x1x4x4xf32>
  return %o : tensor<1x1x4x4xf32>
}

// -----

func.func @bits(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = attn.elementwise %x {
  ^bb0(%a: f32):
    %one = arith.constant 1 : i32
    // expected-error@+1 {{'arith.bitcast' op has no derivative}}
    %b = arith.bitcast %a : f32 to i32
    %c = arith.ori %b, %one : i32
    %d = arith.bitcast %c : i32 to f32
    attn.yield %d : f32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
