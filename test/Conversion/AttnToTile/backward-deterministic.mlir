// RUN: fovea-opt %s --attn-select-schedule=deterministic --attn-online-softmax \
// RUN:   --convert-elementwise-to-linalg --attn-tile --convert-attn-to-tile --canonicalize --cse \
// RUN:   --remarks-filter=attn-select-schedule 2>%t \
// RUN:   | FileCheck %s --implicit-check-not=atomic_rmw
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// A score that has an element of its own writes it, in any order.
// CHECK-LABEL: func @own_elements
// CHECK:       tile.launch kernel "attention_backward"
// CHECK:         memref.store
// CHECK:       return
func.func @own_elements(%q: tensor<1x2x?x16xf16>, %lse: tensor<1x2x?xf32>, %t: tensor<2x?x?xf32>) -> (tensor<1x2x?x16xf16>, tensor<2x?x?xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x?xf32>, tensor<1x2x?xf32>) captures(%t : tensor<2x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%h, %i, %j] : tensor<2x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<2x?x?xf32>
  return %dq, %db : tensor<1x2x?x16xf16>, tensor<2x?x?xf32>
}

// Those of several batches share one, which is as large as a batch's scores: each
// batch has a launch of its own, which adds to an element once.
// REMARK: captured tensor 0: launches in turn add to its gradient, for integers would take memory of unknown size
// CHECK-LABEL: func @batches_share
// CHECK:       %[[ZEROS:.*]] = linalg.fill {{.*}} outs(%{{.*}} : tensor<2x?x?xf32>)
// CHECK:       %[[LOOP:.*]]:4 = scf.for %[[BATCH:.*]] = %c0{{.*}} to %c4{{.*}} iter_args(%[[DQ:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[SUM:.*]] = %[[ZEROS]])
// CHECK:         %[[RESULT:.*]]:4 = tile.launch kernel "attention_backward" grid(%{{.*}}, %c2{{.*}}) {{.*}} outs(%[[DQ]], %{{.*}}, %{{.*}}, %[[SUM]] :
// CHECK:           tile.load %{{.*}}[%[[BATCH]], %{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:           memref.atomic_rmw addf
// CHECK:         scf.yield %[[RESULT]]#0, %[[RESULT]]#1, %[[RESULT]]#2, %[[RESULT]]#3
// CHECK:       return %{{.*}}, %[[LOOP]]#3
func.func @batches_share(%q: tensor<4x2x?x16xf16>, %lse: tensor<4x2x?xf32>, %t: tensor<2x?x?xf32>) -> (tensor<4x2x?x16xf16>, tensor<2x?x?xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<4x2x?xf32>, tensor<4x2x?xf32>) captures(%t : tensor<2x?x?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%h, %i, %j] : tensor<2x?x?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<4x2x?x16xf16>, tensor<4x2x?x16xf16>, tensor<4x2x?x16xf16>, tensor<4x2x?x16xf16> -> tensor<4x2x?x16xf16>, tensor<4x2x?x16xf16>, tensor<4x2x?x16xf16>, tensor<2x?x?xf32>
  return %dq, %db : tensor<4x2x?x16xf16>, tensor<2x?x?xf32>
}

// So do heads, where they share one, too.
// REMARK: captured tensor 0: launches in turn add to its gradient, for integers would take 38 MiB
// CHECK-LABEL: func @heads_share
// CHECK:       scf.for %[[BATCH:.*]] = %c0{{.*}} to %c4{{ }}
// CHECK:         scf.for %[[HEAD:.*]] = %c0{{.*}} to %c2{{ }}
// CHECK:           tile.launch kernel "attention_backward" grid(%c4{{[_0-9]*}}) warps
// CHECK:             tile.load %{{.*}}[%[[BATCH]], %[[HEAD]], %{{.*}}, %{{.*}}]
// CHECK:             memref.atomic_rmw addf
// CHECK:       return
func.func @heads_share(%q: tensor<4x2x512x16xf16>, %lse: tensor<4x2x512xf32>, %t: tensor<512x512xf32>) -> (tensor<4x2x512x16xf16>, tensor<512x512xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<4x2x512xf32>, tensor<4x2x512xf32>) captures(%t : tensor<512x512xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%i, %j] : tensor<512x512xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<4x2x512x16xf16>, tensor<4x2x512x16xf16>, tensor<4x2x512x16xf16>, tensor<4x2x512x16xf16> -> tensor<4x2x512x16xf16>, tensor<4x2x512x16xf16>, tensor<4x2x512x16xf16>, tensor<512x512xf32>
  return %dq, %db : tensor<4x2x512x16xf16>, tensor<512x512xf32>
}

// A small tensor's elements are added up in integers, of which the first
// dimension counts those of an element. The place among them is the exponent's,
// that of the mantissa in the integer, too: 16 exponents have an integer, as
// 2 * 64 terms are few.
// REMARK: captured tensor 0: its gradient is added up in integers, which take 1 MiB
// CHECK-LABEL: func @small
// CHECK:       %[[ZEROS:.*]] = linalg.fill {{.*}} outs(%{{.*}} : tensor<19x20x20xi64>)
// CHECK:       %[[SUMS:.*]]:2 = tile.launch {{.*}} outs(%{{.*}}, %[[ZEROS]] :
// CHECK:         scf.if
// CHECK:           %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK:           %[[UPPER:.*]] = arith.shrui %[[BITS]], %c23_i32
// CHECK:           %[[FIELD:.*]] = arith.andi %[[UPPER]], %c255_i32
// CHECK:           %[[FRACTION:.*]] = arith.andi %[[BITS]], %c8388607_i32
// CHECK:           %[[SPECIAL:.*]] = arith.cmpi eq, %[[FIELD]], %c255_i32
// CHECK:           %[[HIDDEN:.*]] = arith.minui %[[FIELD]], %c1_i32
// CHECK:           %[[EXPONENT:.*]] = arith.subi %[[FIELD]], %[[HIDDEN]]
// CHECK:           %[[OFFSET:.*]] = arith.andi %[[EXPONENT]], %c15_i32
// CHECK:           arith.shli %{{.*}}, %{{.*}} : i64
// CHECK:           %[[TERM:.*]] = arith.select %[[SPECIAL]], %c1_i64, %{{.*}} : i64
// CHECK:           %[[NUMBER:.*]] = arith.shrui %[[EXPONENT]], %c4_i32
// CHECK:           %[[CHOSEN:.*]] = arith.select %[[SPECIAL]], %{{.*}}, %[[NUMBER]] : i32
// CHECK:           %[[INTEGER:.*]] = arith.index_castui %[[CHOSEN]] : i32 to index
// CHECK:           memref.atomic_rmw addi %[[TERM]], %{{.*}}[%[[INTEGER]], %{{.*}}, %{{.*}}] : (i64, memref<19x20x20xi64
// CHECK:       linalg.generic
// CHECK:         scf.for %[[N:.*]] = %c0{{.*}} to %c16{{ }}
// CHECK:           tensor.extract %[[SUMS]]#1[%[[N]], %{{.*}}, %{{.*}}]
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c20{{ }}
// CHECK:         tensor.extract %[[SUMS]]#1[%c16{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:         tensor.extract %[[SUMS]]#1[%c17{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:         tensor.extract %[[SUMS]]#1[%c18{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:       return
func.func @small(%q: tensor<64x2x20x16xf16>, %lse: tensor<64x2x20xf32>, %t: tensor<20x20xf32>) -> (tensor<64x2x20x16xf16>, tensor<20x20xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<64x2x20xf32>, tensor<64x2x20xf32>) captures(%t : tensor<20x20xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %x = tensor.extract %t[%i, %j] : tensor<20x20xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<64x2x20x16xf16>, tensor<64x2x20x16xf16>, tensor<64x2x20x16xf16>, tensor<64x2x20x16xf16> -> tensor<64x2x20x16xf16>, tensor<64x2x20x16xf16>, tensor<64x2x20x16xf16>, tensor<20x20xf32>
  return %dq, %db : tensor<64x2x20x16xf16>, tensor<20x20xf32>
}

// There is no other way where scores of one head share an element. Of how many
// terms it is the sum is found where the launch is made.
// REMARK: captured tensor 0: its gradient is added up in integers, which take memory of unknown size
// CHECK-LABEL: func @distances
// CHECK:       arith.cmpi sle, %{{.*}}, %c2147483648{{ }}
// CHECK:       arith.cmpi sle, %{{.*}}, %c8388608{{ }}
// CHECK:       linalg.fill {{.*}} outs(%{{.*}} : tensor<?x?xi64>)
// CHECK:       tile.launch
// CHECK-NOT:     tile.sum_diagonals
// CHECK:         memref.atomic_rmw addi
// CHECK:       return
func.func @distances(%q: tensor<1x2x?x16xf16>, %lse: tensor<1x2x?xf32>, %t: tensor<?xf32>) -> (tensor<1x2x?x16xf16>, tensor<?xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x?xf32>, tensor<1x2x?xf32>) captures(%t : tensor<?xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %d = arith.addi %i, %j : index
        %x = tensor.extract %t[%d] : tensor<?xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<?xf32>
  return %dq, %db : tensor<1x2x?x16xf16>, tensor<?xf32>
}

// Scores at the same distance of query and key share one. What a warp has of them
// is added up first, in the order of its registers and lanes.
// REMARK: captured tensor 0: its gradient is added up in integers
// CHECK-LABEL: func @differences
// CHECK:       tile.launch
// CHECK:         %[[SUMS:.*]] = tile.sum_diagonals
// CHECK:         tile.map ins(%[[SUMS]] :
// CHECK:           memref.atomic_rmw addi
// CHECK:       return
func.func @differences(%q: tensor<1x2x64x16xf16>, %lse: tensor<1x2x64xf32>, %t: tensor<128xf32>) -> (tensor<1x2x64x16xf16>, tensor<128xf32>) {
  %dq, %dk, %dv, %db = attn.attention_backward %q, %q, %q, %q scale(0.25)
      statistics(%lse, %lse : tensor<1x2x64xf32>, tensor<1x2x64xf32>) captures(%t : tensor<128xf32>)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c64 = arith.constant 64 : index
        %d = arith.subi %i, %j : index
        %at = arith.addi %d, %c64 : index
        %x = tensor.extract %t[%at] : tensor<128xf32>
        %r = arith.addf %s, %x : f32
        attn.yield %r : f32
      } {schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2>}
      : tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16> -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<128xf32>
  return %dq, %db : tensor<1x2x64x16xf16>, tensor<128xf32>
}
