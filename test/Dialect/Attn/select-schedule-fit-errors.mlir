// Schedules that are there already are checked: by hand they may be anything.
// RUN: fovea-opt %s --attn-select-schedule --split-input-file --verify-diagnostics

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @schedule_shared(%q: tensor<1x2x8x128xf16>) -> tensor<1x2x8x128xf16> {
    // expected-error@+1 {{has a schedule that does not fit the target: a tile of 128x128 by 8 warps in 4 stages needs 295936 bytes of shared memory, but a block on "sm_90a" has 232448}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 4>}
      : tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16> -> tensor<1x2x8x128xf16>
    return %o : tensor<1x2x8x128xf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @schedule_of_host(%q: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
    // expected-error@+1 {{has a schedule without warps and stages, which "sm_90a" needs}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 48x64, order = linear>}
      : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
    return %o : tensor<1x2x8x64xf16>
  }
}

// -----

module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 12000, peak = 300>} {
  func.func @schedule_fits(%q: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
    // expected-error@+1 {{has a schedule that does not fit the target: a tile of 512x1024 needs 2887680 bytes, but a core of "host" has 1048576}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 512x1024, order = linear>}
      : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
    return %o : tensor<1x2x8x64xf16>
  }
}

// -----

func.func @schedule_of_queries(%q: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error@+1 {{has a schedule whose tile must have a multiple of 16 queries for each of 4 warps, but has 80}}
  %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 80x64, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %o : tensor<1x2x8x64xf16>
}

// -----

func.func @schedule_of_keys(%x: tensor<1x2x8x16xf16>, %l: tensor<1x2x8xf32>) {
  // expected-error@+1 {{has a schedule whose products 4 warps must share, by multiples of 16 rows and of 8 columns, but one has 80x16}}
  %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
    {schedule = #attn.schedule<tile = 64x80, order = linear, warps = 4, stages = 2>}
    : tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16> -> tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>
  return
}

// -----

#hopper = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #hopper} {
  func.func @backward_registers(%x: tensor<1x2x8x128xf16>, %l: tensor<1x2x8xf32>) {
    // expected-error@+1 {{has a schedule that does not fit the target: a tile of 128x128 by 8 warps in 1 stages needs 297 registers a thread, but there are 240}}
    %0:3 = attn.attention_backward %x, %x, %x, %x scale(1.0) statistics(%l, %l : tensor<1x2x8xf32>, tensor<1x2x8xf32>)
      {schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 1>}
      : tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16> -> tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16>
    return
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @schedule_registers(%q: tensor<1x2x8x128xf16>) -> tensor<1x2x8x128xf16> {
    // expected-error@+1 {{needs 281 registers a thread, but there are 240}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 128x192, order = linear, warps = 8, stages = 1>}
      : tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16>, tensor<1x2x8x128xf16> -> tensor<1x2x8x128xf16>
    return %o : tensor<1x2x8x128xf16>
  }
}

// -----

func.func @schedule_of_online(%q: tensor<1x1x8x64xf16>, %acc: tensor<1x1x8x64xf32>, %m: tensor<1x1x8xf32>, %i: index) -> tensor<1x1x8x64xf32> {
  // expected-error@+1 {{has a schedule whose tile must have a multiple of 16 queries for each of 4 warps, but has 80}}
  %0:3 = attn.online_attention scale(1.0) update(all)
    ins(%q, %q, %q : tensor<1x1x8x64xf16>, tensor<1x1x8x64xf16>, tensor<1x1x8x64xf16>)
    outs(%acc, %m, %m : tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
    at [%i, %i, %i, %i] whole [%i, %i]
    {schedule = #attn.schedule<tile = 80x64, order = linear, warps = 4, stages = 2>}
    -> tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
  return %0#0 : tensor<1x1x8x64xf32>
}

// -----

// Two warps have the same keys, and half of the queries each.
func.func @shared_queries(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>, %slopes: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has a schedule whose 4 warps share queries that gradients of captured tensors are added up over: expects a multiple of 16 keys for each warp, but has 32}}
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%slopes : tensor<2xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<2xf32>
  return %ds : tensor<2xf32>
}

// -----

// Reads of a captured tensor that the schedule leaves out, or adds up in a way
// that their indices rule out.
func.func @reads(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>, %slopes: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has a schedule for 0 reads of captured tensors with gradients, but has 1}}
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%slopes : tensor<2xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, gradients = <parallel = [batch, head, key]>>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<2xf32>
  return %ds : tensor<2xf32>
}

// -----

func.func @own(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>, %slopes: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has a schedule that adds up gradients by own, which the indices of a read rule out}}
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%slopes : tensor<2xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        // expected-note@+1 {{the read}}
        %slope = tensor.extract %slopes[%h] : tensor<2xf32>
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, gradients = <parallel = [batch, head, key], captures = [own]>>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<2xf32>
  return %ds : tensor<2xf32>
}

// -----

func.func @diagonal_integers(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>, %slopes: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{has a schedule that adds up gradients by diagonal_integers, which the indices of a read rule out}}
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%slopes : tensor<64xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        // expected-note@+1 {{the read}}
        %slope = tensor.extract %slopes[%j] : tensor<64xf32>
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, gradients = <parallel = [batch, head, key], captures = [diagonal_integers]>>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<64xf32>
  return %ds : tensor<64xf32>
}

// -----

func.func @nested(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>, %t: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{has a schedule, but reads a captured tensor that has a gradient in a region within its score region}}
  %dq, %dk, %dv, %ds = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%t : tensor<64xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.cmpi eq, %i, %j : index
        %r = scf.if %c -> f32 {
          %slope = tensor.extract %t[%j] : tensor<64xf32>
          scf.yield %slope : f32
        } else {
          scf.yield %s : f32
        }
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x64, order = linear>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<64xf32>
  return %ds : tensor<64xf32>
}

// -----

func.func @queries(%q: tensor<1x2x64x16xf16>, %l: tensor<1x2x64xf32>) -> tensor<1x2x64x16xf16> {
  // expected-error@+1 {{has a schedule with 2048 queries in a tile, but a host packs at most 1024}}
  %dq, %dk, %dv = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%l, %l : tensor<1x2x64xf32>, tensor<1x2x64xf32>)
      {schedule = #attn.schedule<tile = 2048x64, order = linear>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>
  return %dq : tensor<1x2x64x16xf16>
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
module attributes {machine.target = #sm90} {
  func.func @widen_nothing(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xf16>) -> tensor<2x2x4x64xf16> {
    %e = tensor.empty() : tensor<2x2x256x64xf16>
    %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x64xf16>
    // expected-error@+1 {{has a schedule that widens keys and values, but keys and values are not both widened from 8 bits}}
    %o = attn.attention %q, %k, %vs scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, widen = 4>} : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
    return %o : tensor<2x2x4x64xf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
module attributes {machine.target = #sm90} {
  func.func @widen_head_dim(%q: tensor<2x2x4x48xf16>, %ks: tensor<2x2x256x48xi8>, %vs: tensor<2x2x256x48xi8>) -> tensor<2x2x4x48xf16> {
    %e = tensor.empty() : tensor<2x2x256x48xf16>
    %k = linalg.generic #each ins(%ks : tensor<2x2x256x48xi8>) outs(%e : tensor<2x2x256x48xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x48xf16>
    %v = linalg.generic #each ins(%vs : tensor<2x2x256x48xi8>) outs(%e : tensor<2x2x256x48xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x48xf16>
    // expected-error@+1 {{has a schedule that widens keys and values, but a head dim is no multiple of 32}}
    %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, widen = 4>} : tensor<2x2x4x48xf16>, tensor<2x2x256x48xf16>, tensor<2x2x256x48xf16> -> tensor<2x2x4x48xf16>
    return %o : tensor<2x2x4x48xf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
module attributes {machine.target = #sm90} {
  func.func @widen_features(%q: tensor<2x2x4x96xf16>, %ks: tensor<2x2x256x96xi8>, %vs: tensor<2x2x256x96xi8>) -> tensor<2x2x4x96xf16> {
    %e = tensor.empty() : tensor<2x2x256x96xf16>
    %k = linalg.generic #each ins(%ks : tensor<2x2x256x96xi8>) outs(%e : tensor<2x2x256x96xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x96xf16>
    %v = linalg.generic #each ins(%vs : tensor<2x2x256x96xi8>) outs(%e : tensor<2x2x256x96xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x96xf16>
    // expected-error@+1 {{has a schedule of which 4 warps share keys, and features of values, by multiples of 16, but there are 64 and 96}}
    %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 16x64, order = linear, warps = 4, stages = 2, widen = products>} : tensor<2x2x4x96xf16>, tensor<2x2x256x96xf16>, tensor<2x2x256x96xf16> -> tensor<2x2x4x96xf16>
    return %o : tensor<2x2x4x96xf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
module attributes {machine.target = #sm90} {
  func.func @widen_stale(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
    %e = tensor.empty() : tensor<2x2x256x64xf16>
    %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x64xf16>
    %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x64xf16>
    // expected-error@+1 {{has a schedule of which 4 warps share keys, which have the exact maximum, but it is stale}}
    %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 16x64, order = linear, warps = 4, stages = 2, maximum = stale, widen = products>} : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
    return %o : tensor<2x2x4x64xf16>
  }
}

// -----

#sm80 = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1555000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
module attributes {machine.target = #sm80} {
  func.func @widen_by_threads(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
    %e = tensor.empty() : tensor<2x2x256x64xf16>
    %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x64xf16>
    %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x64xf16>
    // expected-error@+1 {{has a schedule that widens keys and values, but "sm_80" has no copies for a role that widens}}
    %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, widen = 4>} : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
    return %o : tensor<2x2x4x64xf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
module attributes {machine.target = #sm90} {
  func.func @widen_shared(%q: tensor<2x2x4x128xf16>, %ks: tensor<2x2x256x128xi8>, %vs: tensor<2x2x256x128xi8>) -> tensor<2x2x4x128xf16> {
    %e = tensor.empty() : tensor<2x2x256x128xf16>
    %k = linalg.generic #each ins(%ks : tensor<2x2x256x128xi8>) outs(%e : tensor<2x2x256x128xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x128xf16>
    %v = linalg.generic #each ins(%vs : tensor<2x2x256x128xi8>) outs(%e : tensor<2x2x256x128xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x128xf16>
    // expected-error@+1 {{a tile of 64x128 by 4 warps in 4 stages needs 279552 bytes of shared memory, but a block on "sm_90a" has 232448}}
    %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 4, stages = 4, widen = 4>} : tensor<2x2x4x128xf16>, tensor<2x2x256x128xf16>, tensor<2x2x256x128xf16> -> tensor<2x2x4x128xf16>
    return %o : tensor<2x2x4x128xf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
module attributes {machine.target = #sm90} {
  func.func @widen_registers(%q: tensor<2x2x4x256xf16>, %ks: tensor<2x2x256x256xi8>, %vs: tensor<2x2x256x256xi8>) -> tensor<2x2x4x256xf16> {
    %e = tensor.empty() : tensor<2x2x256x256xf16>
    %k = linalg.generic #each ins(%ks : tensor<2x2x256x256xi8>) outs(%e : tensor<2x2x256x256xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x256xf16>
    %v = linalg.generic #each ins(%vs : tensor<2x2x256x256xi8>) outs(%e : tensor<2x2x256x256xf16>) {
    ^bb0(%bits: i8, %x: f16):
      %small = arith.bitcast %bits : i8 to f8E4M3FN
      %y = arith.extf %small : f8E4M3FN to f16
      linalg.yield %y : f16
    } -> tensor<2x2x256x256xf16>
    // expected-error@+1 {{a tile of 128x32 by 8 warps in 2 stages needs 158 registers a thread for a product, but each starts with 128}}
    %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 128x32, order = linear, warps = 8, stages = 2, widen = 4>} : tensor<2x2x4x256xf16>, tensor<2x2x256x256xf16>, tensor<2x2x256x256xf16> -> tensor<2x2x4x256xf16>
    return %o : tensor<2x2x4x256xf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @parts_of_bf16(%q: tensor<1x2x64x64xbf16>) -> tensor<1x2x64x64xbf16> {
    // expected-error@+1 {{has a schedule with parts, which operands of f32 have, but these are 'bf16'}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, parts = 3>}
      : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
    return %o : tensor<1x2x64x64xbf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @parts_of_tall_warps(%q: tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> {
    // expected-error@+1 {{has a schedule with parts, which are multiplied by WGMMA: expects a target that has it, and 16 queries for each warp of groups of 4, but has 128 queries for 4 warps on "sm_90a"}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 4, stages = 2, parts = 3>}
      : tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32> -> tensor<1x2x64x64xf32>
    return %o : tensor<1x2x64x64xf32>
  }
}

// -----

#sm80 = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1800000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>
module attributes {machine.target = #sm80} {
  func.func @parts_on_ampere(%q: tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> {
    // expected-error@+1 {{has a schedule with parts, which are multiplied by WGMMA: expects a target that has it, and 16 queries for each warp of groups of 4, but has 64 queries for 4 warps on "sm_80"}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, parts = 3>}
      : tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32> -> tensor<1x2x64x64xf32>
    return %o : tensor<1x2x64x64xf32>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @parts_shared(%q: tensor<1x2x64x128xf32>) -> tensor<1x2x64x128xf32> {
    // expected-error@+1 {{has a schedule that does not fit the target: a tile of 128x64 by 8 warps in 2 stages needs 295936 bytes of shared memory, but a block on "sm_90a" has 232448}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 128x64, order = linear, warps = 8, stages = 2, parts = 3>}
      : tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32> -> tensor<1x2x64x128xf32>
    return %o : tensor<1x2x64x128xf32>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @parts_registers(%q: tensor<1x2x64x208xf32>) -> tensor<1x2x64x208xf32> {
    // expected-error@+1 {{has a schedule that does not fit the target: a tile of 64x16 by 4 warps in 1 stages needs 265 registers a thread, but there are 240}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 64x16, order = linear, warps = 4, stages = 1, parts = 3>}
      : tensor<1x2x64x208xf32>, tensor<1x2x64x208xf32>, tensor<1x2x64x208xf32> -> tensor<1x2x64x208xf32>
    return %o : tensor<1x2x64x208xf32>
  }
}

// -----

#sm80 = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1700000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>
module attributes {machine.target = #sm80} {
  func.func @no_clusters(%q: tensor<1x2x256x128xbf16>) -> tensor<1x2x256x128xbf16> {
    // expected-error@+1 {{has a schedule with clusters of 2 blocks, which "sm_80" does not have}}
    %o = attn.attention %q, %q, %q scale(1.0) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, cluster = 2>}
      : tensor<1x2x256x128xbf16>, tensor<1x2x256x128xbf16>, tensor<1x2x256x128xbf16> -> tensor<1x2x256x128xbf16>
    return %o : tensor<1x2x256x128xbf16>
  }
}

// -----

#sm90 = #machine.target<"sm_90a", arch = "hopper", cores = 132, vector_bytes = 128, vector_registers = 2048, fast_memory = 232448, near_memory = 52428800, bandwidth = 4290000, peak = 66900, shared_memory = 233472, matrix_peak = 989000>
module attributes {machine.target = #sm90} {
  func.func @masked_cluster(%q: tensor<1x2x256x128xbf16>, %ids: tensor<256xi32>) -> tensor<1x2x256x128xbf16> {
    // expected-error@+1 {{has a schedule with clusters of 2 blocks, which read the same keys, but a mask that reads tensors tells these apart}}
    %o = attn.attention %q, %q, %q scale(1.0) mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %ids[%i] : tensor<256xi32>
      %y = tensor.extract %ids[%j] : tensor<256xi32>
      %keep = arith.cmpi eq, %x, %y : i32
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 2, cluster = 2>}
      : tensor<1x2x256x128xbf16>, tensor<1x2x256x128xbf16>, tensor<1x2x256x128xbf16> -> tensor<1x2x256x128xbf16>
    return %o : tensor<1x2x256x128xbf16>
  }
}
