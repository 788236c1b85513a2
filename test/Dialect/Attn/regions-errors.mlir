// What regions must not hold: anything but operations on numbers. The error is
// at the operation, and names it and the region.
//
// RUN: fovea-opt %s --split-input-file --verify-diagnostics

func.func @tensor_op(%s: tensor<1x1x8x8xf32>, %t: tensor<8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'attn.softmax' op is not allowed in the modify region of 'attn.modify': expected operations on numbers (arith, math, index, affine.apply, scf.if, scf.for, scf.while), tensor.extract or tensor.dim; what is computed on tensors or has side effects belongs in front of 'attn.modify'}}
    %e = attn.softmax %t : tensor<8xf32> -> tensor<8xf32>
    %r = tensor.extract %e[%j] : tensor<8xf32>
    attn.yield %r : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @tensor_op_in_attention(%q: tensor<1x1x8x8xf32>, %t: tensor<8xf32>) -> tensor<1x1x8x8xf32> {
  %o = attn.attention %q, %q, %q scale(1.0) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'attn.scale' op is not allowed in the score region of 'attn.attention'}}
    %e = attn.scale %t by 2.0 : tensor<8xf32>
    %y = tensor.extract %e[%j] : tensor<8xf32>
    attn.yield %y : f32
  } : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  return %o : tensor<1x1x8x8xf32>
}

// -----

// An operation on numbers, on a tensor.
func.func @elementwise_on_tensor(%s: tensor<1x1x8x8xf32>, %t: tensor<8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'arith.cmpf' op makes 'tensor<8xi1>' in the mask region of 'attn.mask', where numbers are f16, bf16, f32, f64, index or a signless integer of at most 64 bits}}
    %e = arith.cmpf olt, %t, %t : tensor<8xf32>
    %r = tensor.extract %e[%j] : tensor<8xi1>
    attn.yield %r : i1
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @nested(%s: tensor<1x1x8x8xf32>, %t: tensor<8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.cmpi slt, %i, %j : index
    %r = scf.if %c -> f32 {
      // expected-error@+1 {{'tensor.extract_slice' op is not allowed in the modify region of 'attn.modify'}}
      %e = tensor.extract_slice %t[%j] [1] [1] : tensor<8xf32> to tensor<1xf32>
      %n = arith.constant 0 : index
      %y = tensor.extract %e[%n] : tensor<1xf32>
      scf.yield %y : f32
    } else {
      scf.yield %x : f32
    }
    attn.yield %r : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

// A tensor that a loop carries.
func.func @carried(%s: tensor<1x1x8x8xf32>, %t: tensor<8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %one = arith.constant 1 : index
    // expected-error@+1 {{'scf.for' op makes 'tensor<8xf32>' in the modify region of 'attn.modify'}}
    %e = scf.for %n = %i to %j step %one iter_args(%u = %t) -> tensor<8xf32> {
      scf.yield %u : tensor<8xf32>
    }
    %r = tensor.extract %e[%j] : tensor<8xf32>
    attn.yield %r : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

// A tensor that a loop's condition reads.
func.func @conditional(%s: tensor<1x1x8x8xf32>, %t: tensor<8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %no = arith.constant false
    // expected-error@+1 {{'scf.while' op takes 'tensor<8xf32>' in the modify region of 'attn.modify'}}
    %r = scf.while (%u = %t) : (tensor<8xf32>) -> f32 {
      %y = tensor.extract %u[%j] : tensor<8xf32>
      scf.condition(%no) %y : f32
    } do {
    ^bb0(%y: f32):
      scf.yield %t : tensor<8xf32>
    }
    attn.yield %r : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @complex(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'complex.create' op is not allowed in the modify region of 'attn.modify'}}
    %z = "complex.create"(%x, %x) : (f32, f32) -> complex<f32>
    %r = "complex.re"(%z) : (complex<f32>) -> f32
    attn.yield %r : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @read_complex(%s: tensor<1x1x8x8xf32>, %t: tensor<8xcomplex<f32>>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'tensor.extract' op makes 'complex<f32>' in the modify region}}
    %z = tensor.extract %t[%j] : tensor<8xcomplex<f32>>
    attn.yield %x : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @vector(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'vector.broadcast' op is not allowed in the modify region of 'attn.modify'}}
    %z = vector.broadcast %x : f32 to vector<4xf32>
    %r = vector.extract %z[0] : f32 from vector<4xf32>
    attn.yield %r : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @captured_vector(%s: tensor<1x1x8x8xf32>, %v: vector<4xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'math.exp' op makes 'vector<4xf32>' in the modify region}}
    %z = math.exp %v : vector<4xf32>
    attn.yield %x : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @wide(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'arith.index_cast' op makes 'i128' in the mask region of 'attn.mask'}}
    %z = arith.index_cast %i : index to i128
    %r = arith.cmpi eq, %z, %z : i128
    attn.yield %r : i1
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @small_float(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'arith.truncf' op makes 'f8E4M3FN' in the modify region}}
    %z = arith.truncf %x : f32 to f8E4M3FN
    %r = arith.extf %z : f8E4M3FN to f32
    attn.yield %r : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @loop(%s: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %m = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'scf.forall' op is not allowed in the modify region of 'attn.modify'}}
    scf.forall (%n) in (8) {
    }
    attn.yield %x : f32
  } : tensor<1x1x8x8xf32>
  return %m : tensor<1x1x8x8xf32>
}

// -----

func.func @store(%s: tensor<1x1x8x8xf32>, %m: memref<8xf32>) -> tensor<1x1x8x8xf32> {
  %r = attn.modify %s {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{'memref.store' op is not allowed in the modify region of 'attn.modify'}}
    memref.store %x, %m[%j] : memref<8xf32>
    attn.yield %x : f32
  } : tensor<1x1x8x8xf32>
  return %r : tensor<1x1x8x8xf32>
}

// -----

func.func @elementwise(%t: tensor<8xf32>) -> tensor<8xf32> {
  %r = attn.elementwise %t {
  ^bb0(%x: f32):
    // expected-error@+1 {{'tensor.from_elements' op is not allowed in the elementwise region of 'attn.elementwise'}}
    %e = tensor.from_elements %x : tensor<1xf32>
    attn.yield %x : f32
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
