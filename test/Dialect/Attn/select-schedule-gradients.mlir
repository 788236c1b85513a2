// Schedules of backward passes on GPUs.
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule \
// RUN:   --remarks-filter=attn-select-schedule 2>%t | FileCheck %s --check-prefix=SM90
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --attn-select-schedule | FileCheck %s --check-prefix=SM80

// The backward pass: a warp has 16 keys; two accumulators, scores and their
// gradients fill the registers.
// SM90-LABEL: func @backward_d128
// SM90: attn.attention_backward
// SM90-SAME: schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]
// SM80-LABEL: func @backward_d128
// SM80: warps = {{4|8}}, stages = 2
func.func @backward_d128(%x: tensor<2x16x?x128xbf16>, %l: tensor<2x16x?xf32>) -> tensor<2x16x?x128xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    : tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16> -> tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>
  return %dq : tensor<2x16x?x128xbf16>
}

// SM90-LABEL: func @backward_d64
// SM90: schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]
func.func @backward_d64(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>) -> tensor<2x16x?x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>
  return %dq : tensor<2x16x?x64xbf16>
}

// Of narrow values, the queries' gradients take more registers than scores do.
// SM90-LABEL: func @backward_narrow_values
// SM90: schedule = #attn.schedule<tile = 64x64, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]
func.func @backward_narrow_values(%x: tensor<2x2x127x256xbf16>, %v: tensor<2x2x127x16xbf16>, %l: tensor<2x2x127xf32>) -> tensor<2x2x127x256xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %v, %v scale(0.125) statistics(%l, %l : tensor<2x2x127xf32>, tensor<2x2x127xf32>)
    : tensor<2x2x127x256xbf16>, tensor<2x2x127x256xbf16>, tensor<2x2x127x16xbf16>, tensor<2x2x127x16xbf16> -> tensor<2x2x127x256xbf16>, tensor<2x2x127x256xbf16>, tensor<2x2x127x16xbf16>
  return %dq : tensor<2x2x127x256xbf16>
}

// A derivative that reads scores keeps them in registers beside probabilities.
// SM90-LABEL: func @backward_soft_cap
// SM90: schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]
func.func @backward_soft_cap(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>) -> tensor<2x16x?x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %t = math.tanh %s : f32
      attn.yield %t : f32
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>
  return %dq : tensor<2x16x?x64xbf16>
}

// A bias comes as tiles, of which threads read parts; numbers that a derivative
// reads as well stay in registers, as gradients of a bias do. Without TMA, and of
// numbers of 64 bits, elements are read one by one.
// SM90-LABEL: func @backward_bias_d64(
// SM90: tile = 128x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients
// SM80-LABEL: func @backward_bias_d64(
// SM80: stages = 2, gradients
func.func @backward_bias_d64(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<16x?x?xbf16>) -> tensor<2x16x?x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %c[%h, %i, %j] : tensor<16x?x?xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      attn.yield %t : f32
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>
  return %dq : tensor<2x16x?x64xbf16>
}

// SM90-LABEL: func @backward_factors(
// SM90: tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients
func.func @backward_factors(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<16x?x?xbf16>) -> tensor<2x16x?x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %c[%h, %i, %j] : tensor<16x?x?xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.mulf %s, %f : f32
      attn.yield %t : f32
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>
  return %dq : tensor<2x16x?x64xbf16>
}

// SM90-LABEL: func @backward_mask(
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, captures = tiled, gradients
func.func @backward_mask(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>, %m: tensor<?x?xi1>) -> tensor<2x16x?x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %m[%i, %j] : tensor<?x?xi1>
      attn.yield %e : i1
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>
  return %dq : tensor<2x16x?x64xbf16>
}

// SM90-LABEL: func @backward_distances(
// SM90: tile = 128x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients
func.func @backward_distances(%x: tensor<2x16x1024x64xbf16>, %l: tensor<2x16x1024xf32>, %c: tensor<16x2048xf32>) -> tensor<2x16x1024x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x1024xf32>, tensor<2x16x1024xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %c1023 = arith.constant 1023 : index
      %d = arith.subi %i, %j : index
      %p = arith.addi %d, %c1023 : index
      %e = tensor.extract %c[%h, %p] : tensor<16x2048xf32>
      %t = arith.addf %s, %e : f32
      attn.yield %t : f32
    }
    : tensor<2x16x1024x64xbf16>, tensor<2x16x1024x64xbf16>, tensor<2x16x1024x64xbf16>, tensor<2x16x1024x64xbf16> -> tensor<2x16x1024x64xbf16>, tensor<2x16x1024x64xbf16>, tensor<2x16x1024x64xbf16>
  return %dq : tensor<2x16x1024x64xbf16>
}

// SM90-LABEL: func @backward_exact_bias(
// SM90: stages = 2, gradients
func.func @backward_exact_bias(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<16x?x?xf64>) -> tensor<2x16x?x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %c[%h, %i, %j] : tensor<16x?x?xf64>
      %f = arith.truncf %e : f64 to f32
      %t = arith.addf %s, %f : f32
      attn.yield %t : f32
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>
  return %dq : tensor<2x16x?x64xbf16>
}

// SM90-LABEL: func @backward_bias_d128(
// SM90: tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients
func.func @backward_bias_d128(%x: tensor<2x16x?x128xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<16x?x?xbf16>) -> tensor<2x16x?x128xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %c[%h, %i, %j] : tensor<16x?x?xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      attn.yield %t : f32
    }
    : tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16> -> tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>
  return %dq : tensor<2x16x?x128xbf16>
}

// SM90-LABEL: func @backward_bias_gradient_d128(
// SM90: tile = 32x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients
func.func @backward_bias_gradient_d128(%x: tensor<2x16x?x128xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<16x?x?xbf16>) -> tensor<16x?x?xbf16> {
  %dq, %dk, %dv, %dc = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    captures(%c : tensor<16x?x?xbf16>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %e = tensor.extract %c[%h, %i, %j] : tensor<16x?x?xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      attn.yield %t : f32
    }
    : tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16> -> tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<16x?x?xbf16>
  return %dc : tensor<16x?x?xbf16>
}

// Gradients of what heads choose are summed in registers, from scores and
// probabilities that are kept; some may be spilled.
// SM90-LABEL: func @backward_slopes
// SM90: schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]
func.func @backward_slopes(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<16xf32>) -> tensor<16xf32> {
  %dq, %dk, %dv, %dc = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    captures(%c : tensor<16xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %t = tensor.extract %c[%h] : tensor<16xf32>
      %r = arith.mulf %s, %t : f32
      attn.yield %r : f32
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<16xf32>
  return %dc : tensor<16xf32>
}

// What queries and keys choose is sent to memory. Of a bias that is added, no
// score is kept for that.
// SM90-LABEL: func @backward_bias
// SM90: schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]
func.func @backward_bias(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<16x?x?xf32>) -> tensor<16x?x?xf32> {
  %dq, %dk, %dv, %dc = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    captures(%c : tensor<16x?x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %t = tensor.extract %c[%h, %i, %j] : tensor<16x?x?xf32>
      %r = arith.addf %s, %t : f32
      attn.yield %r : f32
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<16x?x?xf32>
  return %dc : tensor<16x?x?xf32>
}

// Warps share the columns of few queries' gradients, 8 each at least.
// SM80-LABEL: func @backward_narrow
// SM80: schedule = #attn.schedule<tile = {{32|64|128}}x
func.func @backward_narrow(%x: tensor<2x16x?x16xf16>, %l: tensor<2x16x?xf32>, %c: tensor<16x?x?xf32>) -> tensor<16x?x?xf32> {
  %dq, %dk, %dv, %dc = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    captures(%c : tensor<16x?x?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %t = tensor.extract %c[%h, %i, %j] : tensor<16x?x?xf32>
      %r = arith.addf %s, %t : f32
      attn.yield %r : f32
    }
    : tensor<2x16x?x16xf16>, tensor<2x16x?x16xf16>, tensor<2x16x?x16xf16>, tensor<2x16x?x16xf16> -> tensor<2x16x?x16xf16>, tensor<2x16x?x16xf16>, tensor<2x16x?x16xf16>, tensor<16x?x?xf32>
  return %dc : tensor<16x?x?xf32>
}

// SM90-LABEL: func @backward_captures
// SM90-NOT: schedule
// REMARK: a captured tensor with a gradient is read in a region within the score region; the backward pass is written out, kernel by kernel
func.func @backward_captures(%x: tensor<2x16x?x64xbf16>, %l: tensor<2x16x?xf32>, %c: tensor<?xf32>) -> tensor<?xf32> {
  %dq, %dk, %dv, %dc = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    captures(%c : tensor<?xf32>)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %first = arith.cmpi eq, %i, %j : index
      %t = scf.if %first -> f32 {
        %y = tensor.extract %c[%i] : tensor<?xf32>
        scf.yield %y : f32
      } else {
        scf.yield %s : f32
      }
      attn.yield %t : f32
    }
    : tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16> -> tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<2x16x?x64xbf16>, tensor<?xf32>
  return %dc : tensor<?xf32>
}

// In f64, by scalar products.
// SM90-LABEL: func @backward_double
// SM90: attn.attention_backward
// SM90-SAME: schedule = #attn.schedule<tile = {{16|32}}x
func.func @backward_double(%x: tensor<2x16x?x64xf64>, %l: tensor<2x16x?xf64>) -> tensor<2x16x?x64xf64> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf64>, tensor<2x16x?xf64>)
    : tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64> -> tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64>
  return %dq : tensor<2x16x?x64xf64>
}

// Accumulators of head dim 256 take the registers of two warps for 16 keys.
// SM90-LABEL: func @backward_d256
// SM90: schedule = #attn.schedule<tile = 32x64, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]
// SM80-LABEL: func @backward_d256
// SM80: schedule = #attn.schedule<tile = 32x64, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]
func.func @backward_d256(%x: tensor<2x16x?x256xbf16>, %l: tensor<2x16x?xf32>) -> tensor<2x16x?x256xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<2x16x?xf32>, tensor<2x16x?xf32>)
    : tensor<2x16x?x256xbf16>, tensor<2x16x?x256xbf16>, tensor<2x16x?x256xbf16>, tensor<2x16x?x256xbf16> -> tensor<2x16x?x256xbf16>, tensor<2x16x?x256xbf16>, tensor<2x16x?x256xbf16>
  return %dq : tensor<2x16x?x256xbf16>
}

// A schedule by hand, with which no kernel could be made.
// REMARK: a head dim is dynamic, 0 or above 256, so that its schedule is not used
// REMARK: a head dim is no multiple of 8 up to 256; the backward pass is written out, kernel by kernel
// SM90-LABEL: func @unfit_backward
// SM90-NOT: schedule
// SM90: return
func.func @unfit_backward(%q: tensor<2x16x512x?xf16>, %l: tensor<2x16x512xf32>) -> tensor<2x16x512x?xf16> {
  %0:3 = attn.attention_backward %q, %q, %q, %q scale(0.125) statistics(%l, %l : tensor<2x16x512xf32>, tensor<2x16x512xf32>)
    {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]>>}
    : tensor<2x16x512x?xf16>, tensor<2x16x512x?xf16>, tensor<2x16x512x?xf16>, tensor<2x16x512x?xf16> -> tensor<2x16x512x?xf16>, tensor<2x16x512x?xf16>, tensor<2x16x512x?xf16>
  return %0#0 : tensor<2x16x512x?xf16>
}

// Few heads of keys, of any batch and length: as many shares of their query heads as
// give eight heads blocks of their own.
// SM90-LABEL: func @few_heads
// SM90: attn.attention_backward {{.*}} shares = 8>>}
// SM90: attn.attention_backward {{.*}} shares = 2>>}
// SM90: attn.attention_backward {{.*}} gradients = <parallel = [batch, head, key]>>}
// SM90: attn.attention_backward {{.*}} gradients = <parallel = [batch, head, key]>>}
func.func @few_heads(%q: tensor<?x32x?x128xf16>, %k: tensor<?x1x?x128xf16>, %four: tensor<?x4x?x128xf16>, %eight: tensor<?x8x?x128xf16>, %any: tensor<?x?x?x128xf16>, %l: tensor<?x32x?xf32>) {
  %0:3 = attn.attention_backward %q, %k, %k, %q scale(0.125) statistics(%l, %l : tensor<?x32x?xf32>, tensor<?x32x?xf32>)
    : tensor<?x32x?x128xf16>, tensor<?x1x?x128xf16>, tensor<?x1x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x1x?x128xf16>, tensor<?x1x?x128xf16>
  %1:3 = attn.attention_backward %q, %four, %four, %q scale(0.125) statistics(%l, %l : tensor<?x32x?xf32>, tensor<?x32x?xf32>)
    : tensor<?x32x?x128xf16>, tensor<?x4x?x128xf16>, tensor<?x4x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x4x?x128xf16>, tensor<?x4x?x128xf16>
  %2:3 = attn.attention_backward %q, %eight, %eight, %q scale(0.125) statistics(%l, %l : tensor<?x32x?xf32>, tensor<?x32x?xf32>)
    : tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>
  %3:3 = attn.attention_backward %q, %any, %any, %q scale(0.125) statistics(%l, %l : tensor<?x32x?xf32>, tensor<?x32x?xf32>)
    : tensor<?x32x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>
  return
}

// Static sizes: equal blocks in rounds. 2048 keys are 16 blocks, so that 8 shares of one
// sequence run in one round, as 8 sequences do by themselves.
// SM90-LABEL: func @static_heads
// SM90: attn.attention_backward {{.*}} shares = 8>>}
// SM90: attn.attention_backward {{.*}} gradients = <parallel = [batch, head, key]>>}
func.func @static_heads(%q: tensor<1x32x2048x128xf16>, %k: tensor<1x1x2048x128xf16>, %l: tensor<1x32x2048xf32>, %q4: tensor<8x32x2048x128xf16>, %k4: tensor<8x1x2048x128xf16>, %l4: tensor<8x32x2048xf32>) {
  %0:3 = attn.attention_backward %q, %k, %k, %q scale(0.125) statistics(%l, %l : tensor<1x32x2048xf32>, tensor<1x32x2048xf32>)
    : tensor<1x32x2048x128xf16>, tensor<1x1x2048x128xf16>, tensor<1x1x2048x128xf16>, tensor<1x32x2048x128xf16> -> tensor<1x32x2048x128xf16>, tensor<1x1x2048x128xf16>, tensor<1x1x2048x128xf16>
  %1:3 = attn.attention_backward %q4, %k4, %k4, %q4 scale(0.125) statistics(%l4, %l4 : tensor<8x32x2048xf32>, tensor<8x32x2048xf32>)
    : tensor<8x32x2048x128xf16>, tensor<8x1x2048x128xf16>, tensor<8x1x2048x128xf16>, tensor<8x32x2048x128xf16> -> tensor<8x32x2048x128xf16>, tensor<8x1x2048x128xf16>, tensor<8x1x2048x128xf16>
  return
}
