// RUN: fovea-opt %s --attn-online-softmax --attn-tile --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax=passes=2 --attn-tile --split-input-file | FileCheck %s --check-prefix=TWO

// Parts of the keys are the last dimension of the loop. A part has whole tiles,
// 64 * (tiles * p / 3) on; ragged keys are in the last. Its output is not rounded.
// CHECK-LABEL: func @split
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x2x?x64xf16>, %[[K:[^:]*]]: tensor<1x2x200x64xf16>, %[[V:[^:]*]]: tensor<1x2x200x32xf16>
// CHECK: %[[N:.*]] = tensor.dim %[[Q]], %{{.*}} : tensor<1x2x?x64xf16>
// CHECK: %[[PO:.*]] = tensor.empty(%{{.*}}) : tensor<3x1x2x?x32xf32>
// CHECK: %[[PL:.*]] = tensor.empty(%{{.*}}) : tensor<3x1x2x?xf64>
// CHECK: %[[R:.*]]:2 = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[P:.*]]) = (0, 0, 0, 0) to (1, 2, %{{.*}}, 3) step (1, 1, 48, 1) shared_outs(%[[OUT:.*]] = %[[PO]], %[[LSE:.*]] = %[[PL]])
// CHECK: %[[T0:.*]] = arith.muli %[[P]], %c4 : index
// CHECK: %[[D0:.*]] = arith.divsi %[[T0]], %c3 : index
// CHECK: %[[BEGIN:.*]] = arith.muli %[[D0]], %c64 : index
// CHECK: %[[P1:.*]] = arith.addi %[[P]], %c1 : index
// CHECK: %[[T1:.*]] = arith.muli %[[P1]], %c4 : index
// CHECK: %[[D1:.*]] = arith.divsi %[[T1]], %c3 : index
// CHECK: %[[END:.*]] = arith.muli %[[D1]], %c64 : index
// CHECK: %[[S:.*]]:3 = scf.for %[[J:.*]] = %[[BEGIN]] to %[[END]] step %c64
// CHECK: affine.min {{.*}}(%[[J]])
// CHECK: %[[F:.*]]:2 = attn.finalize ins(%[[S]]#0, %[[S]]#1, %[[S]]#2 :
// CHECK-SAME: -> tensor<1x1x?x32xf32>, tensor<1x1x?xf64>
// CHECK: scf.forall.in_parallel {
// CHECK: tensor.parallel_insert_slice %[[F]]#0 into %[[OUT]][%[[P]], %[[B]], %[[H]], %[[I]], 0] [1, 1, 1, %{{.*}}, 32] [1, 1, 1, 1, 1]
// CHECK: tensor.parallel_insert_slice %[[F]]#1 into %[[LSE]][%[[P]], %[[B]], %[[H]], %[[I]]] [1, 1, 1, %{{.*}}] [1, 1, 1, 1]
// CHECK: %[[O:.*]] = attn.merge %[[R]]#0, %[[R]]#1 : tensor<3x1x2x?x32xf32>, tensor<3x1x2x?xf64> -> tensor<1x2x?x32xf16>
// The reader is behind the merge.
// CHECK: linalg.generic {{.*}} ins(%[[O]] :
//
// Each pass over the keys has the same part of them.
// TWO-LABEL: func @split
// TWO: scf.for %{{.*}} = %[[BEGIN:.*]] to %[[END:.*]] step
// TWO: update(max_sum)
// TWO: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step
// TWO: update(acc)
#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @split(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x200x64xf16>, %v: tensor<1x2x200x32xf16>, %e: tensor<1x2x?x32xf16>) -> tensor<1x2x?x32xf16> {
  %o = attn.attention %q, %k, %v scale(0.125) {schedule = #attn.schedule<tile = 48x64, order = linear, split = 3>}
    : tensor<1x2x?x64xf16>, tensor<1x2x200x64xf16>, tensor<1x2x200x32xf16> -> tensor<1x2x?x32xf16>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o : tensor<1x2x?x32xf16>) outs(%e : tensor<1x2x?x32xf16>) {
  ^bb0(%x: f16, %y: f16):
    %z = arith.addf %x, %x : f16
    linalg.yield %z : f16
  } -> tensor<1x2x?x32xf16>
  return %r : tensor<1x2x?x32xf16>
}

// -----

// The tiles that the mask keeps are divided, from the window's first on.
// CHECK-LABEL: func @window
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %c200 : index
// CHECK: %[[UPPER:.*]] = arith.select %{{.*}}, %[[END]], %c0 : index
// CHECK: %[[LOWER:.*]] = arith.muli %{{.*}}, %c16 : index
// CHECK: %[[KEYS:.*]] = arith.subi %[[UPPER]], %[[LOWER]] : index
// CHECK: %[[SOME:.*]] = arith.maxsi %[[KEYS]], %c0 : index
// CHECK: %[[TILES:.*]] = arith.ceildivsi %[[SOME]], %c16 : index
// CHECK: %[[T0:.*]] = arith.muli %[[TILES]], %{{.*}} : index
// CHECK: %[[D0:.*]] = arith.divsi %[[T0]], %c2 : index
// CHECK: %[[O0:.*]] = arith.muli %[[D0]], %c16 : index
// CHECK: %[[BEGIN:.*]] = arith.addi %[[LOWER]], %[[O0]] : index
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %{{.*}} step %c16
func.func @window(%q: tensor<1x1x200x64xf32>) -> (tensor<1x1x200x64xf32>, tensor<1x1x200xf32>) {
  %o, %l = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c40 = arith.constant 40 : index
      %d = arith.subi %i, %j : index
      %past = arith.cmpi sle, %d, %c40 : index
      %causal = arith.cmpi sge, %i, %j : index
      %keep = arith.andi %past, %causal : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 16x16, order = linear, split = 2>}
    : tensor<1x1x200x64xf32>, tensor<1x1x200x64xf32>, tensor<1x1x200x64xf32> -> tensor<1x1x200x64xf32>, tensor<1x1x200xf32>
  return %o, %l : tensor<1x1x200x64xf32>, tensor<1x1x200xf32>
}

// -----

// The parts of all batches, whose number is not static: at least one for each.
// CHECK-LABEL: func @batches
// CHECK: %[[B:.*]] = tensor.dim %{{.*}}, %c0 : tensor<?x2x1x64xf16>
// CHECK: %[[SOME:.*]] = arith.maxsi %[[B]], %c1
// CHECK: %[[EACH:.*]] = arith.divsi %c16, %[[SOME]]
// CHECK: %[[N:.*]] = arith.maxsi %[[EACH]], %c1
// CHECK: tensor.empty(%[[N]], %[[B]]) : tensor<?x?x2x1x64xf32>
// CHECK: scf.forall {{.*}} in (%[[B]], 2, 1, %[[N]])
// CHECK: arith.divsi %{{.*}}, %[[N]] : index
// CHECK: attn.merge %{{.*}} : tensor<?x?x2x1x64xf32>, tensor<?x?x2x1xf64> -> tensor<?x2x1x64xf16>
func.func @batches(%q: tensor<?x2x1x64xf16>, %k: tensor<?x2x?x64xf16>) -> tensor<?x2x1x64xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, split = 16>}
    : tensor<?x2x1x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x1x64xf16>
  return %o : tensor<?x2x1x64xf16>
}
