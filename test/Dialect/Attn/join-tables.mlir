// RUN: fovea-opt %s --attn-join-tables --split-input-file | FileCheck %s
// RUN: fovea-opt %s --attn-online-softmax --attn-tile --attn-order-tiles --attn-join-tables --split-input-file | FileCheck %s --check-prefix=PACKED

// A loop that reads a table at its own place has the number itself; others still read the
// table.

// CHECK-LABEL: func @joined
// CHECK-SAME:    %[[N:.*]]: index)
// CHECK-NOT:   scf.forall
// CHECK:       %[[T:.*]]:3 = scf.forall (%[[I:.*]]) in (%[[N]]) shared_outs(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}})
// CHECK:         %[[X:.*]] = arith.addi %[[I]], %[[I]]
// CHECK:         %[[Y:.*]] = arith.muli %[[X]], %[[I]]
// CHECK:         %[[Z:.*]] = arith.muli %[[X]], %[[Y]]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[A]][%[[I]]]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[B]][%[[I]]]
// CHECK:         tensor.parallel_insert_slice %{{.*}} into %[[C]][%[[I]]]
// CHECK:       tensor.extract %[[T]]#0[%c0]
// CHECK:       return %[[T]]#2
func.func @joined(%n: index) -> (tensor<?xindex>, index) {
  %c0 = arith.constant 0 : index
  %e = tensor.empty(%n) : tensor<?xindex>
  %a = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xindex> {
    %x = arith.addi %i, %i : index
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %x into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  %b = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xindex> {
    %x = tensor.extract %a[%i] : tensor<?xindex>
    %y = arith.muli %x, %i : index
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %y into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  %c = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xindex> {
    %x = tensor.extract %a[%i] : tensor<?xindex>
    %y = tensor.extract %b[%i] : tensor<?xindex>
    %z = arith.muli %x, %y : index
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %z into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  %r = tensor.extract %a[%c0] : tensor<?xindex>
  return %c, %r : tensor<?xindex>, index
}

// -----

// What stays: a loop that reads another place, one over other places, one that writes to
// another place, and one behind an op that reads the table.

// CHECK-LABEL: func @kept
// CHECK-COUNT-5: scf.forall (
func.func @kept(%n: index, %m: index) -> (tensor<?xindex>, tensor<?xindex>, tensor<?xindex>, tensor<?xindex>, index) {
  %c0 = arith.constant 0 : index
  %e = tensor.empty(%n) : tensor<?xindex>
  %a = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xindex> {
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %i into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  %b = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xindex> {
    %x = tensor.extract %a[%c0] : tensor<?xindex>
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %x into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  %c = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?xindex> {
    %x = tensor.extract %b[%i] : tensor<?xindex>
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %x into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  %d = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?xindex> {
    %x = tensor.extract %c[%i] : tensor<?xindex>
    %s = tensor.extract_slice %o[%x] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %i into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%x] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  %r = tensor.extract %b[%c0] : tensor<?xindex>
  %f = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xindex> {
    %x = tensor.extract %b[%i] : tensor<?xindex>
    %y = arith.addi %x, %r : index
    %s = tensor.extract_slice %o[%i] [1] [1] : tensor<?xindex> to tensor<1xindex>
    %t = tensor.insert %y into %s[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xindex> into tensor<?xindex>
    }
  }
  return %b, %c, %d, %f, %r : tensor<?xindex>, tensor<?xindex>, tensor<?xindex>, tensor<?xindex>, index
}

// -----

// Of packed sequences three loops are left in front: one finds where sequences begin; one
// makes tiles, extremes of what the mask reads, and numbers of steps; one sorts the tiles.

// PACKED-LABEL: func @packed
// PACKED-COUNT-4: scf.forall (
// PACKED-NOT:     scf.forall (
func.func @packed(%q: tensor<1x4x?x16xf16>, %first: tensor<?xi32>, %end: tensor<?xi32>) -> tensor<1x4x?x16xf16> {
  %o = attn.attention %q, %q, %q scale(0.25)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %first[%i] : tensor<?xi32>
      %m = arith.index_cast %x : i32 to index
      %e = tensor.extract %end[%i] : tensor<?xi32>
      %n = arith.index_cast %e : i32 to index
      %from = arith.cmpi sge, %j, %m : index
      %to = arith.cmpi slt, %j, %n : index
      %keep = arith.andi %from, %to : i1
      attn.yield %keep : i1
    } {schedule = #attn.schedule<tile = 64x32, order = longest_first, warps = 4, stages = 2, queries = sequences, blocks = dealt>}
    : tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16>, tensor<1x4x?x16xf16> -> tensor<1x4x?x16xf16>
  return %o : tensor<1x4x?x16xf16>
}
