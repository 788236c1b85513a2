// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-tabulate-distances --canonicalize --cse | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --attn-tabulate-distances | FileCheck %s --check-prefix=NONE

// NONE-NOT: linalg.generic

// The clamp and the read are made for the 511 distances of each head, of which the
// number behind them repeats the last.
// CHECK-LABEL: func @clamped(
// CHECK-SAME:    %{{[^:]*}}: tensor<2x4x256x64xbf16>, %[[T:[^:]*]]: tensor<4x65xf32>)
// CHECK:         %[[EMPTY:.*]] = tensor.empty() : tensor<1x4x512xf32>
// CHECK:         %[[TABLE:.*]] = linalg.generic {{.*}} outs(%[[EMPTY]] :
// CHECK:           %[[N:.*]] = linalg.index 2
// CHECK:           %[[D:.*]] = arith.addi %[[N]], %c-255
// CHECK:           %[[LIMITED:.*]] = arith.minsi %[[D]], %c255
// CHECK:           %[[I:.*]] = arith.maxsi %[[LIMITED]], %c0
// CHECK:           %[[H:.*]] = linalg.index 1
// CHECK:           %[[J:.*]] = arith.subi %[[I]], %[[LIMITED]]
// CHECK:           %[[DISTANCE:.*]] = arith.subi %[[I]], %[[J]]
// CHECK:           %[[LOW:.*]] = arith.maxsi %[[DISTANCE]], %c-32
// CHECK:           %[[HIGH:.*]] = arith.minsi %[[LOW]], %c32
// CHECK:           %[[AT:.*]] = arith.addi %[[HIGH]], %c32
// CHECK:           %[[X:.*]] = tensor.extract %[[T]][%[[H]], %[[AT]]]
// CHECK:           linalg.yield %[[X]]
// CHECK:         attn.attention
// CHECK-NEXT:    ^bb0(%[[S:[^:]*]]: f32, %{{[^:]*}}: index, %[[HEAD:[^:]*]]: index, %[[ROW:[^:]*]]: index, %[[KEY:[^:]*]]: index):
// CHECK-NOT:       arith.minsi
// CHECK:           %[[FROM:.*]] = arith.subi %[[ROW]], %[[KEY]]
// CHECK:           %[[PLACE:.*]] = arith.addi %[[FROM]], %c255
// CHECK:           %[[Y:.*]] = tensor.extract %[[TABLE]][%c0{{[^,]*}}, %[[HEAD]], %[[PLACE]]] : tensor<1x4x512xf32>
// CHECK-NEXT:      %[[Z:.*]] = arith.addf %[[S]], %[[Y]]
// CHECK-NEXT:      attn.yield %[[Z]]
func.func @clamped(%q: tensor<2x4x256x64xbf16>, %t: tensor<4x65xf32>) -> tensor<2x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %low = arith.constant -32 : index
    %high = arith.constant 32 : index
    %d = arith.subi %i, %j : index
    %0 = arith.maxsi %d, %low : index
    %1 = arith.minsi %0, %high : index
    %at = arith.addi %1, %high : index
    %x = tensor.extract %t[%h, %at] : tensor<4x65xf32>
    %y = arith.addf %s, %x : f32
    attn.yield %y : f32
  } : tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16> -> tensor<2x4x256x64xbf16>
  return %o : tensor<2x4x256x64xbf16>
}

// A logarithm of the distance, times a number of the batch, in bf16, of lengths
// that are known when the function runs: none if either is 0. What is wider than a
// table's number, or for the score to use, stays in the region.
// CHECK-LABEL: func @logarithm(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<?x4x?x64xbf16>, %[[K:[^:]*]]: tensor<?x4x?x64xbf16>, %{{[^:]*}}: tensor<?xf32>)
// CHECK:         %[[BATCH:.*]] = tensor.dim %[[Q]], %c0
// CHECK:         %[[SQ:.*]] = tensor.dim %[[Q]], %c2
// CHECK:         %[[SK:.*]] = tensor.dim %[[K]], %c2
// CHECK:         %[[LAST:.*]] = arith.addi %[[SK]], %c-1
// CHECK:         %[[SUM:.*]] = arith.addi %[[SQ]], %[[LAST]]
// CHECK:         %[[SCORES:.*]] = arith.muli %[[SQ]], %[[SK]]
// CHECK:         %[[COUNT:.*]] = arith.minsi %[[SUM]], %[[SCORES]]
// CHECK:         %[[UNITS:.*]] = arith.ceildivsi %[[COUNT]], %c16
// CHECK:         %[[N:.*]] = arith.muli %[[UNITS]], %c16
// CHECK:         tensor.empty(%[[BATCH]], %[[N]]) : tensor<?x1x?xbf16>
// CHECK:           %[[B:.*]] = linalg.index 0
// CHECK:           math.log
// CHECK:           tensor.extract %{{.*}}[%[[B]]]
// CHECK:           %[[NARROW:.*]] = arith.truncf
// CHECK:           linalg.yield %[[NARROW]] : bf16
// CHECK:         attn.attention
// CHECK-NOT:       math.log
// CHECK:           %[[X:.*]] = tensor.extract %{{.*}}[%{{.*}}, %c0{{[^,]*}}, %{{.*}}] : tensor<?x1x?xbf16>
// CHECK:           %[[WIDE:.*]] = arith.extf %[[X]] : bf16 to f64
// CHECK:           arith.mulf %{{.*}}, %[[WIDE]] : f64
func.func @logarithm(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x4x?x64xbf16>, %t: tensor<?xf32>) -> tensor<?x4x?x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %one = arith.constant 1.0 : f32
    %d = arith.subi %j, %i : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %a = math.absf %f : f32
    %p = arith.addf %a, %one : f32
    %l = math.log %p : f32
    %u = tensor.extract %t[%b] : tensor<?xf32>
    %v = arith.mulf %l, %u : f32
    %narrow = arith.truncf %v : f32 to bf16
    %wide = arith.extf %narrow : bf16 to f64
    %t0 = arith.extf %s : f32 to f64
    %t1 = arith.mulf %t0, %wide : f64
    %y = arith.truncf %t1 : f64 to f32
    attn.yield %y : f32
  } : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16> -> tensor<?x4x?x64xbf16>
  return %o : tensor<?x4x?x64xbf16>
}

// A tensor of one dimension, for TMA, with what is computed of its number; it has a
// number for each distance only, of which the last is not passed.
// CHECK-LABEL: func @flat(
// CHECK:         linalg.generic
// CHECK:           arith.minsi %{{.*}}, %c255
// CHECK:           %[[X:.*]] = tensor.extract %{{.*}} : tensor<511xf16>
// CHECK:           %[[Y:.*]] = arith.extf %[[X]]
// CHECK:           linalg.yield %[[Y]] : f32
// CHECK:         attn.attention
// CHECK-NOT:       extf
// CHECK:           tensor.extract %{{.*}} : tensor<1x1x512xf32>
func.func @flat(%q: tensor<2x4x256x64xbf16>, %t: tensor<511xf16>) -> tensor<2x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 255 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %x = tensor.extract %t[%at] : tensor<511xf16>
    %w = arith.extf %x : f16 to f32
    %y = arith.addf %s, %w : f32
    attn.yield %y : f32
  } : tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16> -> tensor<2x4x256x64xbf16>
  return %o : tensor<2x4x256x64xbf16>
}

// Two uses, of a read and of what another is computed of: a table each.
// CHECK-LABEL: func @two(
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         attn.attention
// CHECK-COUNT-2:   tensor.extract
// CHECK-NOT:       tensor.extract
// CHECK:         return
func.func @two(%q: tensor<2x4x256x64xbf16>, %t: tensor<256xf32>) -> tensor<2x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant 0 : index
    %d = arith.subi %i, %j : index
    %at = arith.maxsi %d, %zero : index
    %x = tensor.extract %t[%at] : tensor<256xf32>
    %e = math.exp %x : f32
    %y = arith.addf %s, %x : f32
    %z = arith.mulf %y, %e : f32
    attn.yield %z : f32
  } : tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16> -> tensor<2x4x256x64xbf16>
  return %o : tensor<2x4x256x64xbf16>
}

// Booleans, of a number that a tensor says.
// CHECK-LABEL: func @boolean(
// CHECK:         linalg.generic
// CHECK:           linalg.yield %{{.*}} : i1
// CHECK:           tensor.extract %{{.*}} : tensor<1x1x512xi1>
// CHECK:           arith.select
func.func @boolean(%q: tensor<2x4x256x64xbf16>, %t: tensor<511xi32>) -> tensor<2x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 255 : index
    %three = arith.constant 3 : i32
    %low = arith.constant -1.0e4 : f32
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %x = tensor.extract %t[%at] : tensor<511xi32>
    %is = arith.cmpi slt, %x, %three : i32
    %y = arith.select %is, %s, %low : f32
    attn.yield %y : f32
  } : tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16> -> tensor<2x4x256x64xbf16>
  return %o : tensor<2x4x256x64xbf16>
}

// Rows that are no multiple of 16 bytes would be copied in front as well; so numbers
// become wider there.
// CHECK-LABEL: func @narrow(
// CHECK:         linalg.generic
// CHECK:           arith.extf
// CHECK:         attn.attention
// CHECK-NOT:       extf
// CHECK:           tensor.extract %{{.*}} : tensor<1x4x512xf32>
func.func @narrow(%q: tensor<2x4x256x64xbf16>, %t: tensor<4x511xbf16>) -> tensor<2x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 255 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %x = tensor.extract %t[%h, %at] : tensor<4x511xbf16>
    %w = arith.extf %x : bf16 to f32
    %y = arith.addf %s, %w : f32
    attn.yield %y : f32
  } : tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16> -> tensor<2x4x256x64xbf16>
  return %o : tensor<2x4x256x64xbf16>
}

// A table that a part of is copied as it is; arithmetic alone, as of ALiBi; what
// depends on the key or on the sum of positions; functions of the score, and of the
// head alone; numbers of 64 bits.
// CHECK-LABEL: func @kept(
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @kept(%q: tensor<2x4x256x64xbf16>, %t: tensor<4x512xf32>, %f: tensor<256xf32>, %wide: tensor<511xf64>) -> tensor<2x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 255 : index
    %zero = arith.constant 0 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %x = tensor.extract %t[%h, %at] : tensor<4x512xf32>
    %n = arith.index_cast %d : index to i32
    %g = arith.sitofp %n : i32 to f32
    %head = arith.index_cast %h : index to i32
    %hf = arith.sitofp %head : i32 to f32
    %slope = math.exp2 %hf : f32
    %alibi = arith.mulf %g, %slope : f32
    %k = tensor.extract %f[%j] : tensor<256xf32>
    %both = arith.addi %i, %j : index
    %clamped = arith.minsi %both, %last : index
    %l = tensor.extract %f[%clamped] : tensor<256xf32>
    %tanh = math.tanh %s : f32
    %m = tensor.extract %wide[%at] : tensor<511xf64>
    %w = arith.truncf %tanh : f32 to f16
    %e = arith.extf %w : f16 to f64
    %p = arith.mulf %e, %m : f64
    %0 = arith.truncf %p : f64 to f32
    %1 = arith.addf %0, %x : f32
    %2 = arith.addf %1, %alibi : f32
    %3 = arith.addf %2, %k : f32
    %4 = arith.addf %3, %l : f32
    attn.yield %4 : f32
  } : tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16> -> tensor<2x4x256x64xbf16>
  return %o : tensor<2x4x256x64xbf16>
}

// Few queries have few scores for each distance.
// CHECK-LABEL: func @few(
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @few(%q: tensor<2x4x63x64xbf16>, %k: tensor<2x4x256x64xbf16>, %t: tensor<318xf32>) -> tensor<2x4x63x64xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 255 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %x = tensor.extract %t[%at] : tensor<318xf32>
    %y = arith.addf %s, %x : f32
    attn.yield %y : f32
  } : tensor<2x4x63x64xbf16>, tensor<2x4x256x64xbf16>, tensor<2x4x256x64xbf16> -> tensor<2x4x63x64xbf16>
  return %o : tensor<2x4x63x64xbf16>
}
