// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --split-input-file --debug-only=convert-attn-to-tile -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG

// Under the maximum of earlier steps, a term that is a number of the row times the
// position of the key is added in the exponent: to 0.125 log2(e) times the product of
// query and key, which is masked as it is. The slope is read in front of the loop. Where
// it is beyond 256 / 32 log2(e), the step starts again; only there does the score have
// its term, and is masked with it.

// LOG: exponents add a term in the position of the key
// LOG: exponents add a term in the position of the key
// LOG-NOT: exponents add

// CHECK-LABEL: func @slopes
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG:   %[[SCALE2:.*]] = arith.constant 0.180336878 : f32
// CHECK-DAG:   %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG:   %[[MINUS:.*]] = arith.constant -1.44269502 : f32
// CHECK-DAG:   %[[STEEP:.*]] = arith.constant 5.54517746 : f32
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK:       %[[SLOPES:.*]] = tile.map {
// CHECK:         memref.load
// CHECK:       } -> !tile.fragment<64xf32>
// CHECK:       scf.for {{.*}} iter_args(%{{[^ ]*}} = %{{.*}}, %[[MAX:[^ ]*]] = %{{.*}}, %{{[^ ]*}} = %{{.*}})
// CHECK:         %[[S:.*]] = tile.mma {{.*}} transpose_b
// CHECK-NEXT:    %[[MASKED:.*]] = scf.if %[[PARTIAL:[^ ]*]] ->
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[LOWEST]]
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[S]]
// CHECK:         tile.map ins(%{{.*}}, %[[SLOPES]] :
// CHECK:           %[[ABS:.*]] = math.absf
// CHECK:           %[[ABS:.*]] = math.absf
// CHECK:           arith.cmpf ugt, %[[ABS]], %[[STEEP]]
// CHECK:           arith.ori
// CHECK:         tile.map ins(%[[MASKED]] : {{.*}}) rows(%[[MAX]], %[[SLOPES]] :
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f32, %[[M:[^:]*]]: f32, %[[Y:[^:]*]]: f32,
// CHECK:           %[[SHIFT:.*]] = arith.mulf %[[M]], %[[MINUS]]
// CHECK:           %[[SLOPE:.*]] = arith.mulf %[[Y]], %[[LOG2E]]
// CHECK:           %[[POSITION:.*]] = arith.sitofp
// CHECK:           %[[ADDED:.*]] = math.fma %[[SLOPE]], %[[POSITION]], %[[SHIFT]] fastmath<reassoc> : f32
// CHECK:           %[[EXPONENT:.*]] = math.fma %[[X]], %[[SCALE2]], %[[ADDED]] : f32
// CHECK:           math.exp2 %[[EXPONENT]]
// CHECK:         scf.if
// CHECK:           %[[WHOLE:.*]] = tile.map ins(%[[MASKED]] : {{.*}}) rows(%[[SLOPES]] :
// CHECK:             %[[SCALED:.*]] = arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:             %[[TERM:.*]] = arith.mulf
// CHECK:             arith.addf %[[SCALED]], %[[TERM]]
// CHECK:           %[[AGAIN:.*]] = scf.if %[[PARTIAL]] ->
// CHECK:             arith.select %{{.*}}, %{{.*}}, %[[LOWEST]]
// CHECK:           tile.reduce max %[[AGAIN]], %[[MAX]] dim 1
func.func @slopes(%q: tensor<1x4x256x64xbf16>, %slopes: tensor<4xf32>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %slope = tensor.extract %slopes[%h] : tensor<4xf32>
      %y = arith.mulf %x, %slope : f32
      %r = arith.addf %s, %y : f32
      attn.yield %r : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, maximum = stale>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// The other term may be any; a constant that it is multiplied by is the unit of scores,
// 30 log2(e). Terms may be subtracted, have several factors, and depend on the query; a
// position that grows by 2 from key to key may have half of the slope.

// CHECK-LABEL: func @capped
// CHECK-DAG:   %[[CAP:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-DAG:   %[[CAP2:.*]] = arith.constant 43.2808495 : f32
// CHECK-DAG:   %[[STEEP:.*]] = arith.constant 2.77258873 : f32
// CHECK-DAG:   %[[FACTOR:.*]] = arith.constant -3.000000e-01 : f32
// CHECK:       %[[SLOPES:.*]] = tile.map {
// CHECK-NEXT:  ^bb0(%[[I:.*]]: index):
// CHECK:         %[[QUERY:.*]] = arith.addi %{{.*}}, %[[I]] : index
// CHECK:         %[[NUMBER:.*]] = memref.load %{{.*}}[%[[QUERY]]]
// CHECK-NEXT:    %[[SLOPE:.*]] = arith.mulf %[[NUMBER]], %[[FACTOR]] : f32
// CHECK-NEXT:    tile.yield %[[SLOPE]]
// CHECK:       scf.for
// CHECK:         %[[S:.*]] = tile.mma {{.*}} transpose_b
// CHECK:         %[[T:.*]] = tile.map ins(%[[S]] :
// CHECK:           %[[TANH:.*]] = math.tanh
// CHECK-NEXT:      tile.yield %[[TANH]]
// CHECK:         arith.cmpf ugt, %{{.*}}, %[[STEEP]]
// CHECK:         tile.map ins(%[[T]] : {{.*}}) rows(%{{.*}}, %[[SLOPES]] :
// CHECK:           math.fma {{.*}} fastmath<reassoc>
// CHECK:           math.fma %{{.*}}, %[[CAP2]], %{{.*}} : f32
// CHECK:         tile.map ins(%[[T]] : {{.*}}) rows(%[[SLOPES]] :
// CHECK:           arith.mulf %{{.*}}, %[[CAP]]
func.func @capped(%q: tensor<1x4x256x64xbf16>, %slopes: tensor<256xf32>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %cap = arith.constant 30.0 : f32
      %t = math.tanh %s : f32
      %u = arith.mulf %t, %cap : f32
      %two = arith.constant 2 : index
      %k = arith.muli %j, %two : index
      %d = arith.subi %i, %k : index
      %n = arith.index_cast %d : index to i64
      %x = arith.sitofp %n : i64 to f32
      %slope = tensor.extract %slopes[%i] : tensor<256xf32>
      %factor = arith.constant 0.3 : f32
      %y = arith.mulf %slope, %x : f32
      %z = arith.mulf %factor, %y : f32
      %r = arith.subf %u, %z : f32
      attn.yield %r : f32
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, maximum = stale>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// The exact maximum needs whole scores.

// CHECK-LABEL: func @exact
// CHECK-NOT:   reassoc
func.func @exact(%q: tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %r = arith.addf %s, %x : f32
      attn.yield %r : f32
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// A slope of the key is none, nor is a slope that depends on the score.

// CHECK-LABEL: func @of_keys
// CHECK-NOT:   reassoc
func.func @of_keys(%q: tensor<1x4x256x64xbf16>, %slopes: tensor<256xf32>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %n = arith.index_cast %j : index to i64
      %x = arith.sitofp %n : i64 to f32
      %slope = tensor.extract %slopes[%j] : tensor<256xf32>
      %y = arith.mulf %x, %slope : f32
      %z = arith.mulf %x, %s : f32
      %r = arith.addf %z, %y : f32
      attn.yield %r : f32
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, maximum = stale>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// Neither is a position that is not linear, nor one that all keys share.

// CHECK-LABEL: func @not_linear
// CHECK-NOT:   reassoc
func.func @not_linear(%q: tensor<1x4x256x64xbf16>) -> tensor<1x4x256x64xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %p = arith.muli %j, %j : index
      %n = arith.index_cast %p : index to i64
      %x = arith.sitofp %n : i64 to f32
      %m = arith.index_cast %i : index to i64
      %y = arith.sitofp %m : i64 to f32
      %t = arith.addf %s, %x : f32
      %r = arith.subf %t, %y : f32
      attn.yield %r : f32
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, maximum = stale>}
    : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  return %o : tensor<1x4x256x64xbf16>
}

// -----

// In f32, where scores take many instructions each, the difference from the maximum is
// exact.

// CHECK-LABEL: func @single
// CHECK-NOT:   reassoc
func.func @single(%q: tensor<1x4x256x64xf32>) -> tensor<1x4x256x64xf32> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %n = arith.index_cast %j : index to i64
      %x = arith.sitofp %n : i64 to f32
      %r = arith.addf %s, %x : f32
      attn.yield %r : f32
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 1, maximum = stale>}
    : tensor<1x4x256x64xf32>, tensor<1x4x256x64xf32>, tensor<1x4x256x64xf32> -> tensor<1x4x256x64xf32>
  return %o : tensor<1x4x256x64xf32>
}
