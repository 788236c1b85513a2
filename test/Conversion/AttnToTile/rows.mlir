// RUN: fovea-opt %s --attn-select-schedule --attn-online-softmax --attn-tile='fuse-producers=false fuse-consumers=false' --convert-attn-to-tile --canonicalize --cse --split-input-file --remarks-filter=convert-attn-to-tile 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// Keys and values whose rows are gathered are loaded from where they lie, up to
// the last key that is present; absent rows of keys may be anything. Signed
// quotients of positions are unsigned ones.

#rows = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}

// CHECK-LABEL: func @pages
// CHECK-SAME:    %{{.*}}: tensor<2x4x64x64xf16>, %[[K:[^:]*]]: tensor<?x16x4x64xf16>, %[[V:[^:]*]]: tensor<?x16x4x64xf16>, %[[TABLE:[^:]*]]: tensor<2x8xi32>, %[[N:[^:]*]]: tensor<2xindex>
// CHECK-NOT:     linalg.generic
// CHECK:         tile.launch {{.*}} ins(%{{.*}}, %[[N]], %[[K]], %[[TABLE]], %[[V]] :
// CHECK:         ^bb0(%{{.*}}: index, %[[H:.*]]: index, %[[B:.*]]: index, %{{.*}}, %{{.*}}, %[[KM:.*]]: memref<?x16x4x64xf16, {{[^%]*}}>, %[[TM:.*]]: memref<2x8xi32, {{[^%]*}}>, %[[VM:.*]]: memref<?x16x4x64xf16, {{[^%]*}}>, %{{.*}}):
// CHECK:         %[[LENGTH:.*]] = memref.load
// CHECK:         %[[ISCUT:.*]] = arith.cmpi slt, %[[LENGTH]], %c128
// CHECK:         %[[END:.*]] = arith.select %[[ISCUT]], %[[LENGTH]],
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK-DAG:       %[[LEFT:.*]] = arith.subi %[[END]], %[[J]]
// CHECK-DAG:       %[[ROWS:.*]] = arith.minsi %[[LEFT]], %
// CHECK:           tile.load %[[KM]] dims [2, 3] rows(%c0, %[[ROWS]]) whole_runs runs 1 {
// CHECK-NEXT:      ^bb0(%[[R:.*]]: index):
// CHECK-NEXT:        %[[ROW:.*]] = arith.addi %[[J]], %[[R]]
// CHECK-DAG:         %[[PAGE:.*]] = arith.divui %[[ROW]], %c16
// CHECK-DAG:         %[[ENTRY:.*]] = memref.load %[[TM]][%[[B]], %[[PAGE]]]
// CHECK-DAG:         %[[I:.*]] = arith.index_cast %[[ENTRY]]
// CHECK-DAG:         %[[SLOT:.*]] = arith.remui %[[ROW]], %c16
// CHECK:             tile.yield %[[I]], %[[SLOT]], %[[H]] : index, index, index
// CHECK:           tile.load %[[VM]] dims [2, 3] rows(%c0, %[[ROWS]]) runs 1 {
func.func @pages(%q: tensor<2x4x64x64xf16>, %kc: tensor<?x16x4x64xf16>, %vc: tensor<?x16x4x64xf16>, %table: tensor<2x8xi32>, %n: tensor<2xindex>) -> tensor<2x4x64x64xf16> {
  %c16 = arith.constant 16 : index
  %e = tensor.empty() : tensor<2x4x128x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<2x4x128x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.floordivsi %j, %c16 : index
    %slot = arith.remsi %j, %c16 : index
    %p = tensor.extract %table[%b, %page] : tensor<2x8xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x16x4x64xf16>
    linalg.yield %y : f16
  } -> tensor<2x4x128x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<2x4x128x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %c16 : index
    %slot = arith.remui %j, %c16 : index
    %p = tensor.extract %table[%b, %page] : tensor<2x8xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x16x4x64xf16>
    linalg.yield %y : f16
  } -> tensor<2x4x128x64xf16>
  %o = attn.attention %q, %k, %v scale(0.25) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %length = tensor.extract %n[%b] : tensor<2xindex>
    %keep = arith.cmpi slt, %j, %length : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x48, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x64x64xf16>, tensor<2x4x128x64xf16>, tensor<2x4x128x64xf16> -> tensor<2x4x64x64xf16>
  return %o : tensor<2x4x64x64xf16>
}

// -----

// Queries; without a mask, and with tiles that the keys fill, all rows exist.
// Views of the gathered tensor are followed: here of pages, which are gathered
// as a whole, reshaped and transposed.

#pages = {indexing_maps = [affine_map<(b, n, s, h, d) -> (b, n)>, affine_map<(b, n, s, h, d) -> (b, n, s, h, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
#rows = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}

// CHECK-LABEL: func @views
// CHECK-NOT:     linalg.{{generic|transpose}}
// CHECK:         ^bb0(%{{.*}}: index, %[[H:.*]]: index, %[[B:.*]]: index, %[[Q:.*]]: memref<?x4x64xf16, {{[^%]*}}>, %[[STARTS:.*]]: memref<2xindex, {{[^%]*}}>, %[[K:.*]]: memref<?x16x4x64xf16, {{[^%]*}}>, %[[TABLE:.*]]: memref<2x8xindex, {{[^%]*}}>, %{{.*}}):
// CHECK:         tile.load %[[Q]] dims [1, 2] runs 1 {
// CHECK-NEXT:    ^bb0(%[[I:.*]]: index):
// CHECK-DAG:       %[[START:.*]] = memref.load %[[STARTS]][%[[B]]]
// CHECK:           %[[ROW:.*]] = arith.addi %[[START]],
// CHECK-NEXT:      tile.yield %[[ROW]], %[[H]] : index, index
// CHECK:         tile.load %[[K]] dims [2, 3] runs 1 {
// CHECK-NEXT:    ^bb0(%[[R:.*]]: index):
// CHECK-DAG:       %[[KEY:.*]] = arith.addi %{{.*}}, %[[R]]
// CHECK-DAG:       %[[SLOT:.*]] = arith.remui %[[KEY]], %c16
// CHECK-DAG:       %[[NUMBER:.*]] = arith.divui %[[KEY]], %c16
// CHECK-DAG:       %[[PAGE:.*]] = memref.load %[[TABLE]][%[[B]], %[[NUMBER]]]
// CHECK:           tile.yield %[[PAGE]], %[[SLOT]], %[[H]] : index, index, index
func.func @views(%rows: tensor<?x4x64xf16>, %starts: tensor<2xindex>, %cache: tensor<?x16x4x64xf16>, %table: tensor<2x8xindex>) -> tensor<2x4x128x64xf16> {
  %eq = tensor.empty() : tensor<2x4x128x64xf16>
  %q = linalg.generic #rows outs(%eq : tensor<2x4x128x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %i = linalg.index 2 : index
    %d = linalg.index 3 : index
    %start = tensor.extract %starts[%b] : tensor<2xindex>
    %row = arith.addi %start, %i : index
    %y = tensor.extract %rows[%row, %h, %d] : tensor<?x4x64xf16>
    linalg.yield %y : f16
  } -> tensor<2x4x128x64xf16>
  %e = tensor.empty() : tensor<2x8x16x4x64xf16>
  %gathered = linalg.generic #pages ins(%table : tensor<2x8xindex>) outs(%e : tensor<2x8x16x4x64xf16>) {
  ^bb0(%page: index, %x: f16):
    %s = linalg.index 2 : index
    %h = linalg.index 3 : index
    %d = linalg.index 4 : index
    %y = tensor.extract %cache[%page, %s, %h, %d] : tensor<?x16x4x64xf16>
    linalg.yield %y : f16
  } -> tensor<2x8x16x4x64xf16>
  %flat = tensor.collapse_shape %gathered [[0], [1, 2], [3], [4]] : tensor<2x8x16x4x64xf16> into tensor<2x128x4x64xf16>
  %et = tensor.empty() : tensor<2x4x128x64xf16>
  %k = linalg.transpose ins(%flat : tensor<2x128x4x64xf16>) outs(%et : tensor<2x4x128x64xf16>) permutation = [0, 2, 1, 3]
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x4x128x64xf16>, tensor<2x4x128x64xf16>, tensor<2x4x128x64xf16> -> tensor<2x4x128x64xf16>
  return %o : tensor<2x4x128x64xf16>
}

// -----

// Operands that are computed before the loop: one that others read, too; one
// whose column is not the source's; a place that depends on the column; elements
// that are changed; rows of another length. A remark says so.

#rows = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
!t = tensor<1x1x64x64xf16>

// REMARK-COUNT-5: what is gathered is written before attention reads it: loads gather only whole rows of one tensor, which nothing else reads
// REMARK-NOT:     gathered
// CHECK-LABEL: func @read_by_others
// CHECK:         linalg.generic
// CHECK:         tile.launch
// CHECK-NOT:     runs
func.func @read_by_others(%q: !t, %s: tensor<64x64xf16>, %t: tensor<64xindex>) -> (!t, !t) {
  %e = tensor.empty() : !t
  %k = linalg.generic #rows outs(%e : !t) {
  ^bb0(%x: f16):
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %i = tensor.extract %t[%j] : tensor<64xindex>
    %y = tensor.extract %s[%i, %d] : tensor<64x64xf16>
    linalg.yield %y : f16
  } -> !t
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  return %o, %k : !t, !t
}

// CHECK-LABEL: func @others
// CHECK-COUNT-3: linalg.generic
// CHECK:         tile.launch
// CHECK-NOT:     runs
func.func @others(%q: !t, %s: tensor<64x64xf16>, %t: tensor<64xindex>) -> !t {
  %c63 = arith.constant 63 : index
  %e = tensor.empty() : !t
  %q0 = linalg.generic #rows outs(%e : !t) {
  ^bb0(%x: f16):
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %i = tensor.extract %t[%j] : tensor<64xindex>
    %r = arith.subi %c63, %d : index
    %y = tensor.extract %s[%i, %r] : tensor<64x64xf16>
    linalg.yield %y : f16
  } -> !t
  %k = linalg.generic #rows outs(%e : !t) {
  ^bb0(%x: f16):
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %r = arith.xori %j, %d : index
    %i = tensor.extract %t[%r] : tensor<64xindex>
    %y = tensor.extract %s[%i, %d] : tensor<64x64xf16>
    linalg.yield %y : f16
  } -> !t
  %v = linalg.generic #rows outs(%e : !t) {
  ^bb0(%x: f16):
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %i = tensor.extract %t[%j] : tensor<64xindex>
    %y = tensor.extract %s[%i, %d] : tensor<64x64xf16>
    %z = arith.negf %y : f16
    linalg.yield %z : f16
  } -> !t
  %o = attn.attention %q0, %k, %v scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func @part_of_rows
// CHECK:         linalg.generic
// CHECK:         tile.launch
// CHECK-NOT:     runs
func.func @part_of_rows(%q: !t, %s: tensor<64x72xf16>, %t: tensor<64xindex>) -> !t {
  %e = tensor.empty() : !t
  %k = linalg.generic #rows outs(%e : !t) {
  ^bb0(%x: f16):
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %i = tensor.extract %t[%j] : tensor<64xindex>
    %y = tensor.extract %s[%i, %d] : tensor<64x72xf16>
    linalg.yield %y : f16
  } -> !t
  %o = attn.attention %q, %k, %k scale(0.25) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>} : !t, !t, !t -> !t
  return %o : !t
}
