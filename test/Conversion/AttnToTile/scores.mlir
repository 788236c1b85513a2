// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file \
// RUN:   --remarks-filter=convert-attn-to-tile 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// The constant by which a score region multiplies at last is the unit of its
// scores, which only the exponent and the log-sum-exp multiply by: 30, and
// 30 log2(e). In what comes before, flags stay.

// CHECK-LABEL: func @cap
// CHECK-DAG:   %[[CAP:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-DAG:   %[[BASE2:.*]] = arith.constant 43.2808495 : f32
// CHECK:       tile.launch
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           %[[T:.*]] = tile.map ins(%[[S]] :
// CHECK:             arith.divf %{{.*}}, %[[CAP]] : f32
// CHECK-NEXT:        %[[TANH:.*]] = math.tanh %{{.*}} fastmath<afn> : f32
// CHECK-NEXT:        tile.yield %[[TANH]]
// CHECK:           arith.mulf %{{.*}}, %[[BASE2]] : f32
// CHECK:           math.exp2
// CHECK:         math.log2
// CHECK:         math.fma %{{.*}}, %[[CAP]], %{{.*}} : f32
func.func @cap(%q: tensor<1x4x256x64xbf16>) -> (tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>) {
  %o, %lse = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 30.0 : f32
    %0 = arith.divf %s, %cap : f32
    %1 = math.tanh %0 fastmath<afn> : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>
  return %o, %lse : tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>
}

// -----

// A negative constant is no unit: the largest score would be the least.

// CHECK-LABEL: func @negative
// CHECK-DAG:   %[[MINUS:.*]] = arith.constant -3.000000e+01 : f32
// CHECK:       %[[TANH:.*]] = math.tanh
// CHECK-NEXT:  %[[R:.*]] = arith.mulf %[[TANH]], %[[MINUS]] : f32
// CHECK-NEXT:  tile.yield %[[R]]
func.func @negative(%q: tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant -30.0 : f32
    %1 = math.tanh %s : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// A scalar from outside, as a scale that is an operand, is one too if it is clamped to
// what can be one. The first step, whose maximum is minus infinity, knows without it
// that it is relative to its own.

// CHECK-LABEL: func @operand
// CHECK-SAME:    %[[SCALE:[^:]*]]: f32)
// CHECK-DAG:   %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:   %[[RAISED:.*]] = arith.maxnumf %[[SCALE]], %{{.*}} : f32
// CHECK-DAG:   %[[USUAL:.*]] = arith.minnumf %[[RAISED]], %{{.*}} : f32
// CHECK:       tile.launch
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = tile.mma
// CHECK-NOT:       ins(%[[S]]
// CHECK:           tile.map
// CHECK:             arith.cmpf oeq, %{{.*}}, %[[LOWEST]] : f32
// CHECK:           %[[FIRST:.*]] = tile.any
// CHECK:           arith.ori %[[FIRST]],
// CHECK:           tile.map ins(%[[S]] : {{.*}}) rows(
// CHECK:             %[[BASE2:.*]] = arith.mulf %[[USUAL]], %[[LOG2E]] : f32
// CHECK-NEXT:        math.fma %{{.*}}, %[[BASE2]], %{{.*}} : f32
// CHECK:         math.log2
// CHECK:         math.fma %{{.*}}, %[[USUAL]], %{{.*}} : f32
func.func @operand(%q: tensor<1x4x256x64xbf16>, %scale: f32) -> (tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>) {
  %least = arith.constant 1.0e-10 : f32
  %most = arith.constant 1.0e+10 : f32
  %raised = arith.maxnumf %scale, %least : f32
  %usual = arith.minnumf %raised, %most : f32
  %o, %lse = attn.attention %q, %q, %q scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = arith.mulf %s, %usual : f32
    attn.yield %0 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1, maximum = stale>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>
  return %o, %lse : tensor<1x4x256x64xbf16>, tensor<1x4x256xf32>
}

// -----

// Without clamps, or with one that leaves 0, the scalar may be any number. In a loop
// it may change from step to step.

// CHECK-LABEL: func @any
// CHECK-SAME:    %[[SCALE:[^:]*]]: f32)
// CHECK:       %[[S:.*]] = tile.mma
// CHECK:       tile.map ins(%[[S]] :
// CHECK:         %[[R:.*]] = arith.mulf %{{.*}}, %[[SCALE]] : f32
// CHECK-NEXT:    tile.yield %[[R]]
func.func @any(%q: tensor<1x4x256x64xbf16>, %scale: f32) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = arith.mulf %s, %scale : f32
    attn.yield %0 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// CHECK-LABEL: func @zero
// CHECK:       %[[USUAL:.*]] = arith.minnumf
// CHECK:       %[[S:.*]] = tile.mma
// CHECK:       tile.map ins(%[[S]] :
// CHECK:         %[[R:.*]] = arith.mulf %{{.*}}, %[[USUAL]] : f32
// CHECK-NEXT:    tile.yield %[[R]]
func.func @zero(%q: tensor<1x4x256x64xbf16>, %scale: f32) -> tensor<1x4x256x64xbf16> {
  %least = arith.constant 0.0 : f32
  %most = arith.constant 1.0e+10 : f32
  %raised = arith.maxnumf %scale, %least : f32
  %usual = arith.minnumf %raised, %most : f32
  %o = attn.attention %q, %q, %q scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = arith.mulf %s, %usual : f32
    attn.yield %0 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// CHECK-LABEL: func @loop
// CHECK:       scf.for
// CHECK:       %[[USUAL:.*]] = arith.minnumf
// CHECK:       %[[S:.*]] = tile.mma
// CHECK:       tile.map ins(%[[S]] :
// CHECK:         %[[R:.*]] = arith.mulf %{{.*}}, %[[USUAL]] : f32
// CHECK-NEXT:    tile.yield %[[R]]
func.func @loop(%q: tensor<1x4x256x64xbf16>, %scales: tensor<?xf32>, %n: index) -> tensor<1x4x256x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %least = arith.constant 1.0e-10 : f32
  %most = arith.constant 1.0e+10 : f32
  %last = scf.for %at = %c0 to %n step %c1 iter_args(%x = %q) -> tensor<1x4x256x64xbf16> {
    %scale = tensor.extract %scales[%at] : tensor<?xf32>
    %raised = arith.maxnumf %scale, %least : f32
    %usual = arith.minnumf %raised, %most : f32
    %o = attn.attention %x, %x, %x scale(1.0) score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %0 = arith.mulf %s, %usual : f32
      attn.yield %0 : f32
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
      : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
    scf.yield %o : tensor<1x4x256x64xbf16>
  }
  return %last : tensor<1x4x256x64xbf16>
}

// -----

// Distances fit in 32 bits, so they are converted whole, and what is not negative
// by its sign.

// CHECK-LABEL: func @distances
// CHECK:       tile.mma
// CHECK:       tile.map
// CHECK:         %[[D:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// CHECK:         %[[WIDE:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK-NEXT:    arith.sitofp %[[WIDE]] : i64 to f32
// CHECK-NOT:     arith.trunci
// CHECK-NOT:     arith.uitofp
// CHECK:         %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK:         %[[TWICE:.*]] = arith.muli %[[SUM]], %c2{{.*}} : index
// CHECK:         arith.index_cast %[[TWICE]] : index to i64
// CHECK-NOT:     arith.uitofp
// CHECK:         tile.yield
func.func @distances(%q: tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %0 = arith.index_cast %d : index to i64
    %1 = arith.trunci %0 : i64 to i32
    %2 = arith.sitofp %1 : i32 to f32
    %j32 = arith.index_cast %j : index to i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i64
    %3 = arith.addi %j32, %c1 : i32
    %4 = arith.extsi %3 : i32 to i64
    %5 = arith.muli %4, %c2 : i64
    %6 = arith.uitofp %5 : i64 to f32
    %7 = arith.mulf %2, %6 : f32
    %8 = arith.addf %s, %7 : f32
    attn.yield %8 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// What may wrap in 32 bits, or be negative, does as it is written; so does a float
// of 16 bits, and what is no sum.

// CHECK-LABEL: func @kept
// CHECK:       tile.mma
// CHECK:       tile.map
// CHECK-DAG:     %[[HASH:.*]] = arith.trunci
// CHECK-DAG:     arith.sitofp %[[HASH]] : i32 to f32
// CHECK-DAG:     arith.uitofp %{{.*}} : i64 to f32
// CHECK-DAG:     arith.sitofp %{{.*}} : i32 to f16
// CHECK-DAG:     %[[PRODUCT:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK-DAG:     arith.sitofp %[[PRODUCT]] : i32 to f32
// CHECK:         tile.yield
func.func @kept(%q: tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 1000003 : index
    %0 = arith.muli %j, %c : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.trunci %1 : i64 to i32
    %3 = arith.sitofp %2 : i32 to f32
    %d = arith.subi %j, %i : index
    %4 = arith.index_cast %d : index to i64
    %5 = arith.uitofp %4 : i64 to f32
    %6 = arith.index_cast %j : index to i32
    %7 = arith.sitofp %6 : i32 to f16
    %8 = arith.extf %7 : f16 to f32
    %i32 = arith.index_cast %i : index to i32
    %9 = arith.muli %6, %i32 : i32
    %10 = arith.sitofp %9 : i32 to f32
    %11 = arith.addf %3, %5 : f32
    %12 = arith.addf %8, %10 : f32
    %13 = arith.addf %11, %12 : f32
    %14 = arith.addf %s, %13 : f32
    attn.yield %14 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// Under `captures = tiled` what query and key index is loaded as a tile, at the
// head that a region computes; other elements are read one by one, also where a
// number of the tile says which.

// CHECK-LABEL: func @tiles
// CHECK:       tile.launch {{.*}} ins(
// CHECK:       ^bb0(%{{[^:]*}}: index, %[[HEAD:[^:]*]]: index, %{{[^:]*}}: index, %{{[^:]*}}: memref<1x4x256x64xbf16, {{[^>]*}}>>, %[[BIAS:[^:]*]]: memref<2x256x256xbf16, {{[^>]*}}>>, %[[TABLE:[^:]*]]: memref<256xf32,
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           %[[GROUP:.*]] = arith.divui %[[HEAD]], %c2{{[^ ]*}}
// CHECK:           %[[TILE:.*]] = tile.load %[[BIAS]][%[[GROUP]], %{{.*}}, %[[J]]] dims [1, 2] : {{.*}} -> !tile.shared<64x64xbf16>
// CHECK:           %[[X:.*]] = tile.from_shared %[[TILE]] : !tile.shared<64x64xbf16> -> !tile.fragment<64x64xbf16>
// CHECK:           tile.map ins(%[[S]], %[[X]] :
// CHECK-NEXT:      ^bb0(%{{[^:]*}}: f32, %[[E:[^:]*]]: bf16,
// CHECK-NOT:         memref.load %[[BIAS]]
// CHECK:             arith.fptosi %[[E]]
// CHECK:             memref.load %[[TABLE]][
// CHECK:             arith.extf %[[E]]
func.func @tiles(%q: tensor<1x4x256x64xbf16>, %bias: tensor<2x256x256xbf16>, %table: tensor<256xf32>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c2 = arith.constant 2 : index
    %group = arith.divui %h, %c2 : index
    %x = tensor.extract %bias[%group, %i, %j] : tensor<2x256x256xbf16>
    %n = arith.fptosi %x : bf16 to i32
    %at = arith.index_cast %n : i32 to index
    %t = tensor.extract %table[%at] : tensor<256xf32>
    %y = arith.extf %x : bf16 to f32
    %z = arith.addf %s, %y : f32
    %w = arith.addf %z, %t : f32
    attn.yield %w : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1, captures = tiled>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// What a distance indexes is a part of a row, and so are numbers of keys and of
// queries: 127 distances of a tile of 64x64, from the least on. The copy begins at
// a multiple of 16 bytes in front of it: by two numbers where the place is known,
// else by what is left of it. That it is one can be seen in either case.

// CHECK-LABEL: func @lines
// CHECK:       ^bb0(%{{[^:]*}}: index, %[[HEAD:[^:]*]]: index, %[[N:[^:]*]]: index, {{.*}}, %[[TABLE:[^:]*]]: memref<4x511xf32, {{[^>]*}}>>, %[[KEYS:[^:]*]]: memref<1x4x300xbf16, {{[^>]*}}>>, %[[QUERIES:[^:]*]]: memref<4x?xf32, {{[^>]*}}>>
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[D:.*]] = arith.subi %[[I:[^ ]*]], %[[J]]
// CHECK:           %[[FROM:.*]] = arith.addi %[[D]], %c192
// CHECK:           %[[MASKED:.*]] = arith.andi %[[FROM]], %c-4
// CHECK:           %[[PART:.*]] = tile.load %[[TABLE]][%[[HEAD]], %[[MASKED]]] dims [0, 1] : {{.*}} -> !tile.shared<1x132xf32>
// CHECK:           %[[KEY:.*]] = arith.andi %[[J]], %c-8
// CHECK:           tile.load %[[KEYS]][%c0, %[[HEAD]], %[[KEY]]] dims [1, 2] : {{.*}} -> !tile.shared<1x64xbf16>
// CHECK:           %[[START:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK:           %[[DOWN:.*]] = arith.andi %[[START]], %c-4
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[START]], %[[DOWN]]
// CHECK:           %[[OWN:.*]] = tile.load %[[QUERIES]][%[[HEAD]], %[[DOWN]]] dims [0, 1] : {{.*}} -> !tile.shared<1x68xf32>
// CHECK:           tile.from_shared %[[PART]][%c65] by [1, -1] : !tile.shared<1x132xf32> -> !tile.fragment<64x64xf32>
// CHECK:           tile.from_shared %{{.*}}[%c0] by [0, 1] : !tile.shared<1x64xbf16> -> !tile.fragment<64x64xbf16>
// CHECK:           tile.from_shared %[[OWN]][%[[BEFORE]]] by [1, 0] : !tile.shared<1x68xf32> -> !tile.fragment<64x64xf32>
// CHECK-NOT:       memref.load
func.func @lines(%q: tensor<1x4x256x64xbf16>, %table: tensor<4x511xf32>, %keys: tensor<1x4x300xbf16>, %queries: tensor<4x?xf32>, %n: index) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %i32 = arith.index_cast %i : index to i32
    %j32 = arith.index_cast %j : index to i32
    %c257 = arith.constant 257 : i32
    %d = arith.subi %i32, %j32 : i32
    %e = arith.addi %d, %c257 : i32
    %at = arith.index_cast %e : i32 to index
    %x = tensor.extract %table[%h, %at] : tensor<4x511xf32>
    %y = arith.addf %s, %x : f32
    %k = tensor.extract %keys[%c0, %h, %j] : tensor<1x4x300xbf16>
    %l = arith.extf %k : bf16 to f32
    %z = arith.mulf %y, %l : f32
    %own = arith.addi %i, %n : index
    %u = tensor.extract %queries[%h, %own] : tensor<4x?xf32>
    %v = arith.addf %z, %u : f32
    attn.yield %v : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1, captures = tiled>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// Elements at other places are read one by one: of a distance that is clamped, or
// may wrap, or is as far as 2^30, of twice the key, of a row that the query says, and of a tensor of one
// dimension, which TMA does not copy.

// CHECK-LABEL: func @no_lines
// CHECK-NOT:     !tile.shared<1x
// CHECK-COUNT-6: memref.load
func.func @no_lines(%q: tensor<1x4x256x64xbf16>, %table: tensor<256x511xf32>, %flat: tensor<511xf32>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c255 = arith.constant 255 : index
    %c300 = arith.constant 300 : index
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %c255 : index
    %clamped = arith.minsi %e, %c300 : index
    %narrow = arith.index_cast %e : index to i16
    %wraps = arith.index_castui %narrow : i16 to index
    %twice = arith.addi %j, %j : index
    %x = tensor.extract %table[%h, %clamped] : tensor<256x511xf32>
    %y = tensor.extract %table[%h, %wraps] : tensor<256x511xf32>
    %z = tensor.extract %table[%h, %twice] : tensor<256x511xf32>
    %u = tensor.extract %table[%i, %e] : tensor<256x511xf32>
    %c30 = arith.constant 1073741824 : index
    %far = arith.addi %d, %c30 : index
    %w = tensor.extract %table[%h, %far] : tensor<256x511xf32>
    %v = tensor.extract %flat[%e] : tensor<511xf32>
    %0 = arith.addf %s, %x : f32
    %1 = arith.addf %0, %y : f32
    %2 = arith.addf %1, %z : f32
    %3 = arith.addf %2, %u : f32
    %4 = arith.addf %3, %v : f32
    %5 = arith.addf %4, %w : f32
    attn.yield %5 : f32
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1, captures = tiled>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// Without TMA no part of a row is copied.

// CHECK-LABEL: func @no_bulk_copies
// CHECK-NOT:     !tile.shared<1x
// CHECK:         memref.load
module attributes {machine.target = #machine.target<"sm_80", arch = "ampere", cores = 108, vector_bytes = 128, vector_registers = 2048, fast_memory = 166912, near_memory = 41943040, bandwidth = 1555000, peak = 19500, shared_memory = 167936, matrix_peak = 312000>} {
  func.func @no_bulk_copies(%q: tensor<1x4x256x64xbf16>, %table: tensor<4x512xf32>) -> tensor<1x4x256x64xbf16> {
    %o = attn.attention %q, %q, %q scale(0.125) score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %table[%h, %j] : tensor<4x512xf32>
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1, captures = tiled>}
      : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
    return %o : tensor<1x4x256x64xbf16>
  }
}

// -----

// So is what a mask reads, in front of the branch in which it is applied. Nothing
// that exists for some keys only is left, so that the last tile, with fewer, needs
// no clamps, but a test of its keys, which others go without.
// CHECK-LABEL: func @mask_tiles
// CHECK:       ^bb0({{.*}}, %[[MASK:[^:]*]]: memref<200x208xi1,
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[COUNT:.*]] = affine.min
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           %[[SHORT:.*]] = arith.cmpi slt, %[[COUNT]], %c64 : index
// CHECK:           %[[TILE:.*]] = tile.load %[[MASK]][%{{.*}}, %[[J]]] dims [0, 1] : {{.*}} -> !tile.shared<64x64xi1>
// CHECK:           scf.if %{{.*}} -> (!tile.fragment<64x64xf32>)
// CHECK-NEXT:        scf.if %[[SHORT]] -> (!tile.fragment<64x64xf32>)
// CHECK-NEXT:          %[[X:.*]] = tile.from_shared %[[TILE]]
// CHECK-NEXT:          tile.map ins(%[[S]], %[[X]] :
// CHECK-NEXT:          ^bb0(%[[E:[^:]*]]: f32, %[[KEEP:[^:]*]]: i1, %[[I:[^:]*]]: index, %[[K:[^:]*]]: index)
// CHECK-NEXT:            %[[EXISTS:.*]] = arith.cmpi slt, %[[K]], %[[COUNT]] : index
// CHECK-NOT:             memref.load
// CHECK-NOT:             arith.minsi
// CHECK:                 %[[OR:.*]] = arith.ori %[[KEEP]], %{{.*}} : i1
// CHECK-NEXT:            %[[BOTH:.*]] = arith.andi %[[EXISTS]], %[[OR]] : i1
// CHECK-NEXT:            arith.select %[[BOTH]], %[[E]],
// CHECK:               } else {
// CHECK-NEXT:          %[[X2:.*]] = tile.from_shared %[[TILE]]
// CHECK-NEXT:          tile.map ins(%[[S]], %[[X2]] :
// CHECK-NEXT:          ^bb0(%[[E2:[^:]*]]: f32, %[[KEEP2:[^:]*]]: i1, %{{.*}}: index, %{{.*}}: index)
// CHECK-NOT:             arith.cmpi slt
// CHECK-NOT:             memref.load
// CHECK-NOT:             arith.minsi
// CHECK:                 %[[OR2:.*]] = arith.ori %[[KEEP2]], %{{.*}} : i1
// CHECK-NEXT:            arith.select %[[OR2]], %[[E2]],
// CHECK:           tile.mma
func.func @mask_tiles(%q: tensor<1x1x200x64xbf16>, %mask: tensor<200x208xi1>) -> tensor<1x1x200x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %mask[%i, %j] : tensor<200x208xi1>
    %before = arith.cmpi sge, %i, %j : index
    %keep = arith.ori %x, %before : i1
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1, captures = tiled>}
    : tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16> -> tensor<1x1x200x64xbf16>
  return %o : tensor<1x1x200x64xbf16>
}

// -----

// Elements along keys only are read one by one, at places that are clamped.

// CHECK-LABEL: func @padding
// CHECK-NOT:     !tile.shared<64x64xi1>
// CHECK:         arith.minsi
// CHECK:         memref.load %{{.*}} : memref<208xi1,
func.func @padding(%q: tensor<1x1x200x64xbf16>, %mask: tensor<208xi1>) -> tensor<1x1x200x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %mask[%j] : tensor<208xi1>
    attn.yield %x : i1
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 1, captures = tiled>}
    : tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16>, tensor<1x1x200x64xbf16> -> tensor<1x1x200x64xbf16>
  return %o : tensor<1x1x200x64xbf16>
}

// -----

// TMA copies tiles from multiples of 16 bytes on. The first present key of a tile
// is rounded down to one: keys in front of it are masked, and values there zero.

// REMARK-NOT: elements
// CHECK-LABEL: func @starts
// CHECK:       ^bb0({{.*}}, %[[BIAS:[^:]*]]: memref<2x128x256xf16,
// CHECK:         %[[START:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK:         %[[DOWN:.*]] = arith.floordivsi %[[START]], %c16
// CHECK:         %[[FIRST:.*]] = arith.muli %[[DOWN]], %c16
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[SKIPPED:.*]] = affine.max {{.*}}(%[[J]])[%[[FIRST]]]
// CHECK:           %[[PLACE:.*]] = affine.apply {{.*}}(%[[J]])[%[[SKIPPED]]]
// CHECK:           %[[ABSENT:.*]] = arith.subi %[[START]], %[[PLACE]]
// CHECK:           tile.load %[[BIAS]][%{{.*}}, %{{.*}}, %[[PLACE]]] dims [1, 2] : {{.*}} -> !tile.shared<64x64xf16>
// CHECK:           tile.load %{{.*}} rows(%[[ABSENT]], %
func.func @starts(%q: tensor<2x1x128x64xf16>, %k: tensor<2x1x250x64xf16>, %bias: tensor<2x128x256xf16>, %n: tensor<2xi32>) -> tensor<2x1x128x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%b, %i, %j] : tensor<2x128x256xf16>
    %y = arith.extf %x : f16 to f32
    %z = arith.addf %s, %y : f32
    attn.yield %z : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %n[%b] : tensor<2xi32>
    %start = arith.index_cast %x : i32 to index
    %keep = arith.cmpi sge, %j, %start : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 1, captures = tiled>}
    : tensor<2x1x128x64xf16>, tensor<2x1x250x64xf16>, tensor<2x1x250x64xf16> -> tensor<2x1x128x64xf16>
  return %o : tensor<2x1x128x64xf16>
}

// -----

// Where a table says what the first key is, values in front of it are not known to
// be absent. So elements are read one by one.

// REMARK: elements are read one by one, not as tiles: tiles of keys begin at places that are not known to be multiples of 16 bytes
// CHECK-LABEL: func @tabled_starts
// CHECK-NOT:     !tile.shared<64x64xf16>, memref
// CHECK:         memref.load %{{.*}} : memref<128x256xf16,
func.func @tabled_starts(%q: tensor<1x1x128x64xf16>, %k: tensor<1x1x250x64xf16>, %bias: tensor<128x256xf16>, %n: tensor<128xi32>) -> tensor<1x1x128x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i, %j] : tensor<128x256xf16>
    %y = arith.extf %x : f16 to f32
    %z = arith.addf %s, %y : f32
    attn.yield %z : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %n[%i] : tensor<128xi32>
    %start = arith.index_cast %x : i32 to index
    %keep = arith.cmpi sge, %j, %start : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x64, order = longest_first, warps = 4, stages = 1, captures = tiled>}
    : tensor<1x1x128x64xf16>, tensor<1x1x250x64xf16>, tensor<1x1x250x64xf16> -> tensor<1x1x128x64xf16>
  return %o : tensor<1x1x128x64xf16>
}
