// RUN: fovea-opt %s --convert-attn-to-vector --canonicalize --cse --split-input-file | FileCheck %s

// One block of 64 keys with 32 features, 32 queries in pairs of features; values
// of 80 features, for which two times five tiles of sums take three rounds.

// CHECK-LABEL: func @block
// CHECK-SAME: %[[Q:.*]]: memref<1x1x16x64xbf16>, %[[K:.*]]: memref<1x1x64x32xbf16>, %[[V:.*]]: memref<1x1x64x80xbf16>, %[[ACC:[a-z0-9]*]]: memref<1x1x32x80xf32>
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[FACTOR:.*]] = arith.constant dense<0.180336878> : vector<16xf32>
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[HALF:.*]] = arith.constant dense<32768> : vector<16xi32>
// CHECK-DAG: %[[UPPER:.*]] = arith.constant dense<-65536> : vector<16xi32>
// CHECK-DAG: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x64xbf16>
// CHECK-DAG: %[[VALUES:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x160xbf16>
// CHECK: call @fovea_use_matrix_tiles() : () -> ()

// The keys are read as they lie; pairs of keys of the values are packed, whole
// rows at a time.
// CHECK: %[[ROWS:.*]] = memref.subview %[[K]]
// CHECK: %[[KEYS:.*]] = memref.cast %[[ROWS]]
// CHECK: scf.for
// CHECK: vector.load %[[V]]
// CHECK: arith.shli {{.*}} : vector<16xi32>
// CHECK-COUNT-5: vector.store {{.*}}, %[[VALUES]]

// Two tiles of keys times two of queries, each of which is read once; then the
// maximum of rows that were stored before, and behind the loop of the last ones.
// The softmax takes the factor.
// CHECK: scf.for {{.*}} step %[[C32]] iter_args
// CHECK-COUNT-4: amx.tile_zero : !amx.tile<16x16xf32>
// CHECK: %[[LEFT:.*]] = amx.tile_load %[[KEYS]]{{.*}} into !amx.tile<16x32xbf16>
// CHECK: %[[RIGHT:.*]] = amx.tile_load %[[Q]]
// CHECK: amx.tile_mulf %[[LEFT]], %[[RIGHT]]
// CHECK: %[[OTHER:.*]] = amx.tile_load %[[Q]]
// CHECK: amx.tile_mulf %[[LEFT]], %[[OTHER]]
// CHECK: %[[NEXT:.*]] = amx.tile_load %[[KEYS]]
// CHECK: amx.tile_mulf %[[NEXT]], %[[RIGHT]]
// CHECK: amx.tile_mulf %[[NEXT]], %[[OTHER]]
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[P]]
// CHECK: arith.subi %{{.*}}, %[[C32]]
// CHECK: scf.for
// CHECK: vector.load %[[P]]
// CHECK-NOT: vector.store
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %[[C32]] to
// CHECK: vector.load %[[P]]
// CHECK-NOT: vector.store
// CHECK: scf.yield
// CHECK: arith.mulf {{.*}}, %[[FACTOR]]
// CHECK: scf.for
// CHECK: %[[SCORE:.*]] = vector.load %[[P]]
// CHECK: vector.fma %[[SCORE]], %[[FACTOR]], %{{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[P]]

// Weights of a query in a row, two rounded ones in a word.
// CHECK: scf.for {{.*}} step %[[C32]] {
// CHECK: arith.addi {{.*}}, %[[HALF]] : vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"({{.*}}, %[[UPPER]], {{.*}})
// CHECK: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK-COUNT-16: vector.store {{.*}}, %[[WEIGHTS]]

// Rows of the accumulator are rescaled where a factor is not 1; sums of two times
// two tiles, and then of two, stay in tiles for all keys of the block.
// CHECK: %[[DIFFERS:.*]] = arith.cmpf une, {{.*}}, %[[ONE]] : vector<16xf32>
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[DIFFERS]]
// CHECK: scf.if %[[ANY]] {
// CHECK: vector.store {{.*}}, %[[ACC]]
// CHECK-COUNT-4: amx.tile_load %[[ACC]]
// CHECK: amx.tile_load %[[WEIGHTS]]
// CHECK: amx.tile_load %[[VALUES]]
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[ACC]]
// CHECK-COUNT-4: amx.tile_load %[[ACC]]
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[ACC]]
// CHECK-COUNT-2: amx.tile_load %[[ACC]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-2: amx.tile_store %[[ACC]]
// CHECK-NOT: amx.tile_mulf
// CHECK: func private @fovea_use_matrix_tiles()
func.func @block(%q: memref<1x1x16x64xbf16>, %k: memref<1x1x64x32xbf16>,
    %v: memref<1x1x64x80xbf16>, %acc: memref<1x1x32x80xf32>,
    %max: memref<1x1x32xf32>, %sum: memref<1x1x32xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x16x64xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x80xbf16>)
      outs(%acc, %max, %sum : memref<1x1x32x80xf32>, memref<1x1x32xf32>, memref<1x1x32xf32>)
      packed(%rows)
  return
}

// -----

// A factor that is not positive would change the order of the scores.

// CHECK-LABEL: func @negative
// CHECK: %[[FACTOR:.*]] = arith.constant dense<-0.180336878> : vector<16xf32>
// CHECK: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x48xf32>
// CHECK: amx.tile_store
// CHECK: vector.load %[[P]]
// CHECK-COUNT-3: arith.mulf {{.*}}, %[[FACTOR]]
// CHECK-COUNT-3: vector.store {{.*}}, %[[P]]
// CHECK: vector.load %[[P]]
// CHECK-COUNT-3: arith.mulf {{.*}}, %[[FACTOR]]
// CHECK-COUNT-3: vector.store {{.*}}, %[[P]]
// CHECK-NOT: %[[FACTOR]]
func.func @negative(%q: memref<1x1x16x96xbf16>, %k: memref<1x1x64x32xbf16>,
    %v: memref<1x1x64x16xbf16>, %acc: memref<1x1x48x16xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index) {
  attn.online_attention scale(-0.125) update(all)
      ins(%q, %k, %v : memref<1x1x16x96xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x48x16xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}

// -----

// Features that are not contiguous are read one by one. The maximum alone needs
// no values.

// CHECK-LABEL: func @strided
// CHECK: memref.load {{.*}} : memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>
// CHECK-COUNT-3: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
func.func @strided(%q: memref<1x1x16x96xbf16>, %k: memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>,
    %v: memref<1x1x64x16xbf16>, %acc: memref<1x1x48x16xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(max)
      ins(%q, %k, %v : memref<1x1x16x96xbf16>, memref<1x1x64x32xbf16, strided<[4096, 4096, 64, 2]>>, memref<1x1x64x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x48x16xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}

// -----

// Two groups of queries: only the first one's scores are multiplied by themselves.
// Those of the second lie between the rows of the first one's softmax, 16 keys a
// step of 32 features, and take the place of weights that have been transposed;
// their maxima are taken behind the next products.

// CHECK-LABEL: func @overlap
// CHECK-SAME: %[[Q:.*]]: memref<1x1x32x128xbf16>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x64xbf16>
// CHECK-DAG: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
// CHECK: scf.for %[[GROUP:.*]] =
// CHECK: %[[IS_LATER:.*]] = arith.cmpi sgt, %[[GROUP]], %[[C0]]
// CHECK: %[[DONE:.*]] = arith.select %[[IS_LATER]], %[[C64]], %[[C0]]
// CHECK: scf.for {{.*}} to %[[C64]] step %[[C32]]
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[P]]
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %[[C32]]
// CHECK: %[[HAS_NEXT:.*]] = arith.cmpi slt, %[[NEXT]],
// CHECK: scf.if %[[HAS_NEXT]]
// CHECK: scf.for %[[KEY:.*]] = %[[C0]] to %[[C64]] step %[[C32]] iter_args
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: scf.for %[[ROW:.*]] = {{.*}} step %c1
// CHECK: vector.load %[[P]][%[[ROW]], %[[C0]]]
// CHECK: vector.store {{.*}}, %[[P]][%[[ROW]], %[[C0]]]
// CHECK: scf.for %[[READ:.*]] = {{.*}} step %c1
// CHECK-NEXT: vector.load %[[P]][%[[READ]], %[[C0]]]
// CHECK-NOT: vector.store
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK: scf.for %[[ROW:.*]] = {{.*}} step %c1
// CHECK: vector.store {{.*}}, %[[P]][%[[ROW]], %[[C0]]]
// CHECK-COUNT-16: vector.store {{.*}}, %[[WEIGHTS]]
// CHECK-COUNT-4: amx.tile_store %[[P]]

// Behind the last one there are no scores.
// CHECK: } else {
// CHECK-NOT: amx
// CHECK: vector.store {{.*}}, %[[WEIGHTS]]
// CHECK: vector.store {{.*}} : memref<1x1x64xf32>
// CHECK: amx.tile_load %[[WEIGHTS]]
func.func @overlap(%q: memref<1x1x32x128xbf16>, %k: memref<1x1x64x64xbf16>,
    %v: memref<1x1x64x16xbf16>, %acc: memref<1x1x64x16xf32>,
    %max: memref<1x1x64xf32>, %sum: memref<1x1x64xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x32x128xbf16>, memref<1x1x64x64xbf16>, memref<1x1x64x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x64x16xf32>, memref<1x1x64xf32>, memref<1x1x64xf32>)
      packed(%rows)
  return
}

// -----

// With a factor that is not positive scores are multiplied group by group.

// CHECK-LABEL: func @apart
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: scf.if
// CHECK: vector.store {{.*}} : memref<32x64xbf16>
func.func @apart(%q: memref<1x1x32x128xbf16>, %k: memref<1x1x64x64xbf16>,
    %v: memref<1x1x64x16xbf16>, %acc: memref<1x1x64x16xf32>,
    %max: memref<1x1x64xf32>, %sum: memref<1x1x64xf32>, %rows: index) {
  attn.online_attention scale(-0.125) update(all)
      ins(%q, %k, %v : memref<1x1x32x128xbf16>, memref<1x1x64x64xbf16>, memref<1x1x64x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x64x16xf32>, memref<1x1x64xf32>, memref<1x1x64xf32>)
      packed(%rows)
  return
}

// -----

// Where the number of keys is known at run time alone, fewer than a tile has are
// copied; the last tiles of more end with the last key. Three groups of queries,
// each of which takes all steps.

// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[K:[a-z0-9]*]]: memref<1x1x?x32xbf16>
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[COPY:.*]] = memref.alloca() {alignment = 64 : i64} : memref<16x32xbf16>
// CHECK-DAG: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
// CHECK: %[[COUNT:.*]] = arith.minsi
// CHECK: %[[SHORT:.*]] = arith.cmpi slt, %[[COUNT]], %[[C16]]
// CHECK: scf.if %[[SHORT]] {
// CHECK: vector.store {{.*}}, %[[COPY]]
// CHECK: %[[KEYS:.*]] = arith.select %[[SHORT]], {{.*}} : memref<?x32xbf16, strided<[?, 1], offset: ?>>
// CHECK: scf.for %[[GROUP:.*]] =
// CHECK: %[[QUERY:.*]] = arith.muli %[[GROUP]], %[[C32]]
// CHECK: scf.for %[[BEGIN:.*]] = {{.*}} step %[[C32]] iter_args
// CHECK: %[[KEY:.*]] = arith.minsi %[[BEGIN]],
// CHECK: amx.tile_load %[[KEYS]][%[[KEY]],
// CHECK: %[[NEXT:.*]] = arith.addi %[[BEGIN]], %[[C16]]
// CHECK: %[[SECOND:.*]] = arith.minsi %[[NEXT]],
// CHECK: amx.tile_load %[[KEYS]][%[[SECOND]],
// CHECK: amx.tile_store %[[P]][%[[KEY]],
// CHECK: amx.tile_store %[[P]][%[[SECOND]],
// CHECK: vector.load {{.*}}[%{{.*}}, %{{.*}}, %[[QUERY]]] : memref<1x1x96xf32>
// CHECK-COUNT-1: amx.tile_mulf
func.func @dynamic(%q: memref<1x1x16x192xbf16>, %k: memref<1x1x?x32xbf16>,
    %v: memref<1x1x?x16xbf16>, %acc: memref<1x1x96x16xf32>,
    %max: memref<1x1x96xf32>, %sum: memref<1x1x96xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x16x192xbf16>, memref<1x1x?x32xbf16>, memref<1x1x?x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x96x16xf32>, memref<1x1x96xf32>, memref<1x1x96xf32>)
      packed(%rows)
  return
}

// -----

// Pairs of features of 16 queries: a transpose of 32-bit elements.

// CHECK-LABEL: func @pack
// CHECK-SAME: %[[Q:.*]]: memref<1x1x?x64xbf16>, %[[P:.*]]: memref<1x1x32x32xbf16>
// CHECK-COUNT-16: vector.bitcast {{.*}} : vector<32xbf16> to vector<16xi32>
// CHECK-NOT: arith.mulf
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-16: vector.store {{.*}}, %[[P]]
func.func @pack(%q: memref<1x1x?x64xbf16>, %p: memref<1x1x32x32xbf16>) {
  attn.pack_query by 1.0 ins(%q : memref<1x1x?x64xbf16>) outs(%p : memref<1x1x32x32xbf16>)
  return
}

// -----

// CHECK-LABEL: func @pack_strided
// CHECK: memref.load
// CHECK: memref.store
// CHECK-NOT: vector
func.func @pack_strided(%q: memref<1x1x?x64xbf16, strided<[?, ?, ?, 2]>>, %p: memref<1x1x32x32xbf16>) {
  attn.pack_query by 1.0 ins(%q : memref<1x1x?x64xbf16, strided<[?, ?, ?, 2]>>) outs(%p : memref<1x1x32x32xbf16>)
  return
}

// -----

// Numbers in f16 are sums of two in bf16. Queries: 16 rows of both parts, pairs of
// vectors, of which the rest is the difference to what was rounded.

// CHECK-LABEL: func @pack_parts
// CHECK-SAME: %[[Q:.*]]: memref<1x1x?x64xf16>, %[[P:.*]]: memref<1x1x64x32xbf16>
// CHECK-DAG: %[[HALF:.*]] = arith.constant dense<32768> : vector<16xi32>
// CHECK-DAG: %[[UPPER:.*]] = arith.constant dense<-65536> : vector<16xi32>
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK: vector.load %[[Q]]{{.*}} : memref<1x1x?x64xf16>, vector<16xf16>
// CHECK: %[[LOW:.*]] = arith.extf {{.*}} : vector<16xf16> to vector<16xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[LOW]]
// CHECK: %[[ROUNDED:.*]] = arith.addi %[[BITS]], %[[HALF]]
// CHECK: "llvm.x86.avx512.pternlog.d.512"
// CHECK: %[[KEPT:.*]] = arith.andi %[[ROUNDED]], %[[UPPER]]
// CHECK: %[[NUMBER:.*]] = arith.bitcast %[[KEPT]]
// CHECK: arith.subf %[[LOW]], %[[NUMBER]]
// CHECK: "llvm.x86.avx512.pternlog.d.512"
// CHECK-COUNT-16: vector.store {{.*}}, %[[P]]
// CHECK: arith.addi %{{.*}}, %[[C32]]
// CHECK-COUNT-16: vector.store {{.*}}, %[[P]]
// CHECK-NOT: vector.store
func.func @pack_parts(%q: memref<1x1x?x64xf16>, %p: memref<1x1x64x32xbf16>) {
  attn.pack_query by 1.0 ins(%q : memref<1x1x?x64xf16>) outs(%p : memref<1x1x64x32xbf16>)
  return
}

// -----

// Features that lie apart are read one by one.

// CHECK-LABEL: func @pack_parts_strided
// CHECK-COUNT-16: memref.load {{.*}} : memref<1x1x?x64xf16, strided<[?, ?, ?, 2]>>
// CHECK: vector.from_elements
// CHECK: vector.store
func.func @pack_parts_strided(%q: memref<1x1x?x64xf16, strided<[?, ?, ?, 2]>>, %p: memref<1x1x64x32xbf16>) {
  attn.pack_query by 1.0 ins(%q : memref<1x1x?x64xf16, strided<[?, ?, ?, 2]>>) outs(%p : memref<1x1x64x32xbf16>)
  return
}

// -----

// Keys, values and weights get a second part as well; each product is three: of
// both rounded operands, and of each with the other's rest. That of both rests is
// among those of scores, which the log-sum-exp is as exact as.

// CHECK-LABEL: func @parts
// CHECK-SAME: %[[Q:.*]]: memref<1x1x32x64xbf16>, %[[K:.*]]: memref<1x1x64x32xf16>, %[[V:.*]]: memref<1x1x64x16xf16>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[KEYS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x64xbf16>
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32x128xbf16>
// CHECK-DAG: %[[VALUES:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xbf16>
// CHECK: vector.load %[[K]]
// CHECK: vector.store {{.*}}, %[[KEYS]][%[[ROW:.*]], %[[C0]]]
// CHECK: vector.store {{.*}}, %[[KEYS]][%[[ROW]], %[[C32]]]
// CHECK: vector.load %[[V]]
// CHECK: vector.store {{.*}}, %[[VALUES]][%[[PAIR:.*]], %[[C0]]]
// CHECK: %[[REST:.*]] = arith.addi %[[PAIR]], %[[C32]]
// CHECK: vector.store {{.*}}, %[[VALUES]][%[[REST]], %[[C0]]]
// CHECK: amx.tile_load %[[KEYS]][%{{.*}}, %[[C0]]]
// CHECK: amx.tile_load %[[Q]][%[[C0]], %[[C0]], %[[C0]], %[[C0]]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK: amx.tile_load %[[KEYS]][%{{.*}}, %[[C0]]]
// CHECK: amx.tile_load %[[Q]][%[[C0]], %[[C0]], %[[C16]], %[[C0]]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK: amx.tile_load %[[KEYS]][%{{.*}}, %[[C32]]]
// CHECK: amx.tile_load %[[Q]][%[[C0]], %[[C0]], %[[C0]], %[[C0]]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK: amx.tile_load %[[KEYS]][%{{.*}}, %[[C32]]]
// CHECK: amx.tile_load %[[Q]][%[[C0]], %[[C0]], %[[C16]], %[[C0]]]
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-16: vector.store {{.*}}, %[[WEIGHTS]]
// CHECK: arith.addi %{{.*}}, %[[C64]]
// CHECK-COUNT-16: vector.store {{.*}}, %[[WEIGHTS]]
// CHECK: amx.tile_load %[[WEIGHTS]][%[[C0]], %[[C0]]]
// CHECK: amx.tile_load %[[VALUES]][%[[C0]], %[[C0]]]
// CHECK: amx.tile_load %[[VALUES]][%[[C32]], %[[C0]]]
// CHECK: amx.tile_load %[[WEIGHTS]][%[[C0]], %[[C64]]]
// CHECK: amx.tile_load %[[VALUES]][%[[C0]], %[[C0]]]
// CHECK-NOT: amx.tile_load %[[VALUES]][%[[C32]], %[[C0]]]
// CHECK: amx.tile_load %[[WEIGHTS]][%[[C0]], %[[C32]]]
func.func @parts(%q: memref<1x1x32x64xbf16>, %k: memref<1x1x64x32xf16>,
    %v: memref<1x1x64x16xf16>, %acc: memref<1x1x32x16xf32>,
    %max: memref<1x1x32xf32>, %sum: memref<1x1x32xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x32x64xbf16>, memref<1x1x64x32xf16>, memref<1x1x64x16xf16>)
      outs(%acc, %max, %sum : memref<1x1x32x16xf32>, memref<1x1x32xf32>, memref<1x1x32xf32>)
      packed(%rows)
  return
}

// -----

// A mask is asked for 32 keys at a time whether a group of queries keeps them
// all: then the maximum alone is taken.

// CHECK-LABEL: func @masked
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x32xf32>
// CHECK: amx.tile_store %[[P]]
// CHECK: scf.for %[[FIRST:.*]] = {{.*}} step %[[C32]] iter_args
// CHECK: %[[ALL:.*]] = arith.cmpi
// CHECK: scf.if %[[ALL]] -> (vector<16xf32>, vector<16xf32>) {
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// CHECK: vector.load %[[P]]
// CHECK-NOT: vector.store
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// CHECK: vector.load %[[P]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK: vector.store {{.*}}, %[[P]]
func.func @masked(%q: memref<1x1x16x64xbf16>, %k: memref<1x1x64x32xbf16>,
    %v: memref<1x1x64x16xbf16>, %acc: memref<1x1x32x16xf32>,
    %max: memref<1x1x32xf32>, %sum: memref<1x1x32xf32>, %rows: index, %i: index, %p: i1) {
  %c0 = arith.constant 0 : index
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x16x64xbf16>, memref<1x1x64x32xbf16>, memref<1x1x64x16xbf16>)
      outs(%acc, %max, %sum : memref<1x1x32x16xf32>, memref<1x1x32xf32>, memref<1x1x32xf32>)
      at [%c0, %c0, %i, %c0] packed(%rows) partial(%p)
      mask {
      ^bb0(%b: index, %h: index, %r: index, %j: index):
        %keep = arith.cmpi sge, %r, %j : index
        attn.yield %keep : i1
      }
  return
}
