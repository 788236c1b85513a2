// RUN: fovea-opt %s --attn-online-softmax --attn-tile --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// The only part of a batch is stored as the batch's result, one of several as a term
// of their sum, with what its log-sum-exp is rounded by, which is added where it is
// the only one. Each branch computes what it stores. A loop alone reads the terms, so
// that rows of them begin at multiples of a vector's size; those of the result, and of
// one number for each row, may begin anywhere.
// CHECK-LABEL: func @lengths
// CHECK: tile.launch kernel "attention" {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-SAME: tensor<?x2x4x64xf32>, tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x2x4x64xf16>, tensor<?x2x4xf32>
// CHECK-NEXT: ^bb0(%{{[^:]*}}: index, %[[H:[^:]*]]: index, %[[W:[^:]*]]: index,
// CHECK-SAME: %[[SUMS:[^ ]*]]: memref<?x2x4x64xf32, {{[^%]*}}, %[[SUMLSES:[^ ]*]]: memref<?x2x4xf32, {{[^%]*}}, %[[SUMRESTS:[^ ]*]]: memref<?x2x4xf32, {{[^%]*}}, %[[OUT:[^ ]*]]: memref<?x2x4x64xf16, {{[^%]*}}, %[[LSE:[^ ]*]]: memref<?x2x4xf32,
// CHECK: %[[ITEM:.*]]:3 = scf.if
// CHECK: %[[ONLY:.*]] = arith.cmpi eq, %[[ITEM]]#2, %c1
// CHECK-NOT: math.log2
// CHECK: scf.if %[[ONLY]] {
// CHECK-DAG: %[[ROUNDED:.*]] = tile.map exact ins(%[[ROWS:.*]] : !tile.fragment<64x64xf32>)
// CHECK-DAG: tile.store %[[ROUNDED]], %[[OUT]][%[[ITEM]]#0, %[[H]], %c0, %c0] dims [2, 3] : !tile.fragment<64x64xf16>
// CHECK-DAG: math.log2
// CHECK-DAG: %[[BOTH:.*]] = tile.map exact ins(%{{[^,]*}}, %{{[^ ]*}} : !tile.fragment<64xf32>, !tile.fragment<64xf32>)
// CHECK-DAG: tile.store %[[BOTH]], %[[LSE]][%[[ITEM]]#0, %[[H]], %c0] dims [2] : !tile.fragment<64xf32>
// CHECK-NOT: tile.store
// CHECK: } else {
// CHECK-NEXT: tile.store %[[ROWS]], %[[SUMS]][%[[W]], %[[H]], %c0, %c0] dims [2, 3] aligned : !tile.fragment<64x64xf32>
// CHECK-NOT: tile.map exact
// CHECK: %[[SUMLSE:.*]] = tile.map ins(%[[MAX:.*]], %[[SUM:.*]] :
// CHECK: math.log2
// CHECK-NOT: tile.map
// CHECK: tile.store %[[SUMLSE]], %[[SUMLSES]][%[[W]], %[[H]], %c0] dims [2] : !tile.fragment<64xf32>
// CHECK-NEXT: %[[SUMREST:.*]] = tile.map ins(%[[MAX]], %[[SUM]], %[[SUMLSE]] :
// CHECK-NOT: tile.map
// CHECK: tile.store %[[SUMREST]], %[[SUMRESTS]][%[[W]], %[[H]], %c0] dims [2] : !tile.fragment<64xf32>
// CHECK-NOT: tile.store
// CHECK: } -> tensor<
func.func @lengths(%q: tensor<?x2x4x64xf16>, %k: tensor<?x2x?x64xf16>, %len: tensor<?xi32>) -> (tensor<?x2x4x64xf16>, tensor<?x2x4xf32>) {
  %o, %l = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 16>}
    : tensor<?x2x4x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x4x64xf16>, tensor<?x2x4xf32>
  return %o, %l : tensor<?x2x4x64xf16>, tensor<?x2x4xf32>
}

// -----

// Results of the types of parts are stored as they are. A log-sum-exp of f64 is the
// sum of the two numbers that a part has.
// CHECK-LABEL: func @wide
// CHECK: tile.launch
// CHECK: scf.if %{{[^ ]*}} {
// CHECK-NEXT: tile.store %[[ROWS:[^,]*]], %{{.*}} dims [2, 3] : !tile.fragment<64x64xf32>
// CHECK-NEXT: %[[LSE:.*]] = tile.map ins(%[[MAX:.*]], %[[SUM:.*]] :
// CHECK: %[[REST:.*]] = tile.map ins(%[[MAX]], %[[SUM]], %[[LSE]] :
// CHECK: %[[WIDE:.*]] = tile.map exact ins(%[[LSE]], %[[REST]] :
// CHECK-NEXT: ^bb0(%[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32,
// CHECK-NEXT: %[[X64:.*]] = arith.extf %[[X]] : f32 to f64
// CHECK-NEXT: %[[Y64:.*]] = arith.extf %[[Y]] : f32 to f64
// CHECK-NEXT: arith.addf %[[X64]], %[[Y64]] : f64
// CHECK: tile.store %[[WIDE]], %{{.*}} : !tile.fragment<64xf64>
// CHECK: } else {
// CHECK-NEXT: tile.store %[[ROWS]], %{{.*}} dims [2, 3] aligned : !tile.fragment<64x64xf32>
// CHECK: tile.store %{{.*}} dims [2] : !tile.fragment<64xf32>
// CHECK: tile.store %{{.*}} : !tile.fragment<64xf32>
// CHECK-NOT: tile.store
// CHECK: } -> tensor<
func.func @wide(%q: tensor<?x2x4x64xf32>, %k: tensor<?x2x?x64xf32>, %len: tensor<?xi32>) -> (tensor<?x2x4x64xf32>, tensor<?x2x4xf64>) {
  %o, %l = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %len[%b] : tensor<?xi32>
      %n = arith.index_cast %x : i32 to index
      %keep = arith.cmpi slt, %j, %n : index
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = linear, warps = 4, stages = 2, split = 16>}
    : tensor<?x2x4x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32> -> tensor<?x2x4x64xf32>, tensor<?x2x4xf64>
  return %o, %l : tensor<?x2x4x64xf32>, tensor<?x2x4xf64>
}

// -----

// Where all have several parts, each is stored as one.
// CHECK-LABEL: func @parts
// CHECK: tile.launch kernel "attention" {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<3x2x4x64xf32>, tensor<3x2x4xf32>, tensor<3x2x4xf32>)
// CHECK-NOT: scf.if %{{[^ ]*}} {
// CHECK: tile.store %{{.*}} dims [2, 3] aligned valid(%{{[^)]*}}) : !tile.fragment<64x64xf32>
// CHECK: tile.store %{{.*}} dims [2] valid(%{{[^)]*}}) : !tile.fragment<64xf32>
// CHECK: tile.store %{{.*}} dims [2] valid(%{{[^)]*}}) : !tile.fragment<64xf32>
// CHECK-NEXT: } -> tensor<
func.func @parts(%q: tensor<1x2x4x64xf16>, %k: tensor<1x2x384x64xf16>) -> tensor<1x2x4x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, maximum = exact, split = 3>}
    : tensor<1x2x4x64xf16>, tensor<1x2x384x64xf16>, tensor<1x2x384x64xf16> -> tensor<1x2x4x64xf16>
  return %o : tensor<1x2x4x64xf16>
}
