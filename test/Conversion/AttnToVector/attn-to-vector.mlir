// RUN: fovea-opt %s --convert-attn-to-vector --canonicalize --cse --split-input-file | FileCheck %s
// RUN: fovea-opt %s --convert-attn-to-vector="vector-bytes=32 vector-registers=16" --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=AVX2

// One block of 64 keys. Score tile: 8 keys times 3 vectors of 16 queries, two
// features a step; softmax in one loop; value tile: 6 queries times 4 vectors.

// CHECK-LABEL: func @block
// CHECK-DAG: %[[P:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x48xf32>
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C6:.*]] = arith.constant 6 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK: scf.for {{.*}} step %[[C8]]
// CHECK:   scf.for {{.*}} step %[[C2]] iter_args
// CHECK-COUNT-48: vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT: vector.fma
// CHECK:   scf.yield
// CHECK-COUNT-24: vector.store {{.*}}, %[[P]]
// CHECK: arith.cmpf oeq
// CHECK: scf.for
// CHECK-COUNT-3: vector.load %[[P]]
// CHECK-COUNT-15: vector.fma
// CHECK-COUNT-3: vector.store {{.*}}, %[[P]]
// CHECK: scf.for {{.*}} step %[[C6]]
// CHECK:   scf.for
// CHECK-COUNT-24: vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT: vector.fma

// With 16 registers of 8 lanes: 4 keys times 3 vectors; 4 queries times 3.

// AVX2-LABEL: func @block
// AVX2-COUNT-24: vector.fma {{.*}} : vector<8xf32>
// AVX2-NOT: vector.fma
// AVX2: scf.yield
func.func @block(%q: memref<1x1x64x48xf32>, %k: memref<1x1x64x64xf32>,
    %v: memref<1x1x64x64xf32>, %acc: memref<1x1x48x64xf32>,
    %max: memref<1x1x48xf32>, %sum: memref<1x1x48xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x64x48xf32>, memref<1x1x64x64xf32>, memref<1x1x64x64xf32>)
      outs(%acc, %max, %sum : memref<1x1x48x64xf32>, memref<1x1x48xf32>, memref<1x1x48xf32>)
      packed(%rows)
  return
}

// -----

// The maximum alone: no exponential, no values.

// CHECK-LABEL: func @max
// CHECK-NOT: memref.load %{{.*}} : memref<1x1x?x8xf32>
// CHECK-NOT: arith.shli
// CHECK: return
func.func @max(%q: memref<1x1x4x16xf32>, %k: memref<1x1x?x4xf32>,
    %v: memref<1x1x?x8xf32>, %acc: memref<1x1x16x8xf32>,
    %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(max)
      ins(%q, %k, %v : memref<1x1x4x16xf32>, memref<1x1x?x4xf32>, memref<1x1x?x8xf32>)
      outs(%acc, %max, %sum : memref<1x1x16x8xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>)
      packed(%rows)
  return
}

// -----

// f16 keys and values are converted into scratch; 8 of 16 features are stored
// under a mask; f64 would have f64 vectors.

// CHECK-LABEL: func @half
// CHECK: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
func.func @half(%q: memref<1x1x16x16xf32>, %k: memref<1x1x?x16xf16>,
    %v: memref<1x1x?x24xf16>, %acc: memref<1x1x16x24xf32>,
    %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x16x16xf32>, memref<1x1x?x16xf16>, memref<1x1x?x24xf16>)
      outs(%acc, %max, %sum : memref<1x1x16x24xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>)
      packed(%rows)
  return
}

// -----

// Regions: what depends on the query becomes vectors, in front of the loop over
// keys where it can; the mask is applied under the branch.

// CHECK-LABEL: func @regions
// CHECK-SAME: %[[SLOPES:[a-z0-9]*]]: memref<2xf32>, %[[IDS:[a-z0-9]*]]: memref<?xi32>
// CHECK: %[[SLOPE:.*]] = memref.load %[[SLOPES]]
// CHECK: scf.for
// CHECK:   vector.broadcast %[[SLOPE]]
// CHECK:   arith.mulf {{.*}} : vector<16xf32>
// CHECK: scf.if
// CHECK:   %[[ID:.*]] = vector.maskedload %[[IDS]]
// CHECK:   scf.for
// CHECK:     %[[OTHER:.*]] = memref.load %[[IDS]]
// CHECK:     %[[SPLAT:.*]] = vector.broadcast %[[OTHER]] : i32 to vector<16xi32>
// CHECK:     arith.cmpi eq, %[[ID]], %[[SPLAT]] : vector<16xi32>
func.func @regions(%slopes: memref<2xf32>, %ids: memref<?xi32>,
    %q: memref<1x1x4x16xf32>, %k: memref<1x1x?x4xf32>,
    %v: memref<1x1x?x16xf32>, %acc: memref<1x1x16x16xf32>,
    %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>, %rows: index, %p: i1) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x4x16xf32>, memref<1x1x?x4xf32>, memref<1x1x?x16xf32>)
      outs(%acc, %max, %sum : memref<1x1x16x16xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>)
      packed(%rows) partial(%p)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %slope = memref.load %slopes[%h] : memref<2xf32>
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      }
      mask {
      ^bb0(%b: index, %h: index, %i: index, %j: index):
        %x = memref.load %ids[%i] : memref<?xi32>
        %y = memref.load %ids[%j] : memref<?xi32>
        %e = arith.cmpi eq, %x, %y : i32
        attn.yield %e : i1
      }
  return
}

// -----

// A region with a branch is applied score by score.

// CHECK-LABEL: func @branch
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     memref.load
// CHECK:     scf.if
// CHECK:     memref.store
func.func @branch(%q: memref<1x1x4x16xf32>, %k: memref<1x1x?x4xf32>,
    %v: memref<1x1x?x16xf32>, %acc: memref<1x1x16x16xf32>,
    %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>, %rows: index) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x4x16xf32>, memref<1x1x?x4xf32>, memref<1x1x?x16xf32>)
      outs(%acc, %max, %sum : memref<1x1x16x16xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>)
      packed(%rows)
      score {
      ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        %c = arith.cmpi slt, %i, %j : index
        %r = scf.if %c -> f32 {
          %n = arith.negf %s : f32
          scf.yield %n : f32
        } else {
          scf.yield %s : f32
        }
        attn.yield %r : f32
      }
  return
}

// -----

// An op that is not packed is packed tile by tile.

// CHECK-LABEL: func @unpacked
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<1x1x4x48xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<1x1x48x16xf32>
// CHECK-NOT: attn.
func.func @unpacked(%q: memref<2x4x?x4xf32>, %k: memref<2x2x?x4xf32>,
    %v: memref<2x2x?x16xf32>, %acc: memref<2x4x?x16xf32>,
    %max: memref<2x4x?xf32>, %sum: memref<2x4x?xf32>) {
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<2x4x?x4xf32>, memref<2x2x?x4xf32>, memref<2x2x?x16xf32>)
      outs(%acc, %max, %sum : memref<2x4x?x16xf32>, memref<2x4x?xf32>, memref<2x4x?xf32>)
  return
}

// -----

// CHECK-LABEL: func @finalize
// CHECK: math.log2
// CHECK-COUNT-2: math.fma
// CHECK: vector.load
// CHECK: arith.truncf {{.*}} : vector<16xf32> to vector<16xf16>
// CHECK: vector.store
func.func @finalize(%acc: memref<1x1x?x64xf32>, %max: memref<1x1x?xf32>, %sum: memref<1x1x?xf32>,
    %o: memref<1x1x?x64xf16>, %l: memref<1x1x?xf32>) {
  attn.finalize ins(%acc, %max, %sum : memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
      outs(%o, %l : memref<1x1x?x64xf16>, memref<1x1x?xf32>)
  return
}

// -----

// Beside a rest, the logarithm is computed in f64, also in rows of f32.

// CHECK-LABEL: func @finalize_rest
// CHECK-SAME: %[[ACC:[a-z0-9]*]]: memref<1x1x?x64xf32>, %[[MAX:[a-z0-9]*]]: memref<1x1x?xf32>, %[[SUM:[a-z0-9]*]]: memref<1x1x?xf32>, %[[O:[a-z0-9]*]]: memref<1x1x?x64xf32>, %[[L:[a-z0-9]*]]: memref<1x1x?xf32>, %[[R:[a-z0-9]*]]: memref<1x1x?xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f64
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7FF0000000000000 : f64
// CHECK-DAG: %[[MINUSINF:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK: scf.for %[[I:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK: %[[M:.*]] = memref.load %[[MAX]][%c0, %c0, %[[I]]]
// CHECK: %[[S:.*]] = memref.load %[[SUM]][%c0, %c0, %[[I]]]
// CHECK: %[[HASKEY:.*]] = arith.cmpf une, %[[S]], %{{.*}} : f32
// CHECK: %[[M64:.*]] = arith.extf %[[M]] : f32 to f64
// CHECK: %[[S64:.*]] = arith.extf %[[S]] : f32 to f64
// CHECK: math.log2 %[[S64]] : f64
// CHECK-COUNT-2: math.fma %[[M64]],
// CHECK: %[[ALL:.*]] = arith.select %[[HASKEY]], %{{.*}}, %[[MINUSINF]] : f64
// CHECK: %[[NEAREST:.*]] = arith.truncf %[[ALL]] : f64 to f32
// CHECK: memref.store %[[NEAREST]], %[[L]][%c0, %c0, %[[I]]]
// CHECK: %[[NEAREST64:.*]] = arith.extf %[[NEAREST]] : f32 to f64
// CHECK: %[[ABS:.*]] = math.absf %[[NEAREST64]] : f64
// CHECK: %[[ISINF:.*]] = arith.cmpf oeq, %[[ABS]], %[[INF]] : f64
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[ALL]], %[[NEAREST64]] : f64
// CHECK: %[[REST64:.*]] = arith.select %[[ISINF]], %[[ZERO]], %[[DIFFERENCE]] : f64
// CHECK: %[[REST:.*]] = arith.truncf %[[REST64]] : f64 to f32
// CHECK: memref.store %[[REST]], %[[R]][%c0, %c0, %[[I]]]
func.func @finalize_rest(%acc: memref<1x1x?x64xf32>, %max: memref<1x1x?xf32>, %sum: memref<1x1x?xf32>,
    %o: memref<1x1x?x64xf32>, %l: memref<1x1x?xf32>, %r: memref<1x1x?xf32>) {
  attn.finalize ins(%acc, %max, %sum : memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
      outs(%o, %l, %r : memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
  return
}

// -----

// The key that a row begins from is one more number of the sum in f64.

// CHECK-LABEL: func @finalize_rest_init
// CHECK-SAME: %[[ACC:[a-z0-9]*]]: memref<1x1x?x64xf32>, %[[MAX:[a-z0-9]*]]: memref<1x1x?xf32>, %[[SUM:[a-z0-9]*]]: memref<1x1x?xf32>, %[[INIT:[a-z0-9]*]]: memref<1xf32>, %[[O:[a-z0-9]*]]: memref<1x1x?x64xf32>, %[[L:[a-z0-9]*]]: memref<1x1x?xf32>, %[[R:[a-z0-9]*]]: memref<1x1x?xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f64
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7FF0000000000000 : f64
// CHECK-DAG: %[[MINUSINF:.*]] = arith.constant 0xFFF0000000000000 : f64
// CHECK: scf.for %[[I:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK: %[[X:.*]] = memref.load %[[INIT]][%c0]
// CHECK: %[[KEYS:.*]] = arith.select %{{.*}}, %{{.*}}, %[[MINUSINF]] : f64
// CHECK: %[[X64:.*]] = arith.extf %[[X]] : f32 to f64
// CHECK: %[[LARGEST:.*]] = arith.maxnumf %[[KEYS]], %[[X64]] : f64
// CHECK: %[[ISEMPTY:.*]] = arith.cmpf oeq, %[[LARGEST]], %[[MINUSINF]] : f64
// CHECK: arith.subf %[[KEYS]], %[[LARGEST]] : f64
// CHECK: arith.subf %[[X64]], %[[LARGEST]] : f64
// CHECK: %[[LOG:.*]] = math.log %{{.*}} : f64
// CHECK: %[[BOTH:.*]] = arith.addf %[[LARGEST]], %[[LOG]] : f64
// CHECK: %[[ALL:.*]] = arith.select %[[ISEMPTY]], %[[MINUSINF]], %[[BOTH]] : f64
// CHECK: %[[NEAREST:.*]] = arith.truncf %[[ALL]] : f64 to f32
// CHECK: memref.store %[[NEAREST]], %[[L]][%c0, %c0, %[[I]]]
// CHECK: %[[NEAREST64:.*]] = arith.extf %[[NEAREST]] : f32 to f64
// CHECK: %[[ABS:.*]] = math.absf %[[NEAREST64]] : f64
// CHECK: %[[ISINF:.*]] = arith.cmpf oeq, %[[ABS]], %[[INF]] : f64
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[ALL]], %[[NEAREST64]] : f64
// CHECK: %[[REST64:.*]] = arith.select %[[ISINF]], %[[ZERO]], %[[DIFFERENCE]] : f64
// CHECK: %[[REST:.*]] = arith.truncf %[[REST64]] : f64 to f32
// CHECK: memref.store %[[REST]], %[[R]][%c0, %c0, %[[I]]]
func.func @finalize_rest_init(%acc: memref<1x1x?x64xf32>, %max: memref<1x1x?xf32>, %sum: memref<1x1x?xf32>, %init: memref<1xf32>,
    %o: memref<1x1x?x64xf32>, %l: memref<1x1x?xf32>, %r: memref<1x1x?xf32>) {
  attn.finalize ins(%acc, %max, %sum : memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
      init(%init : memref<1xf32>)
      outs(%o, %l, %r : memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
  return
}

// -----

// Where there is no query, none is read.

// CHECK-LABEL: func @pack
// CHECK: %[[QUERIES:.*]] = memref.dim
// CHECK: %[[ARE_SOME:.*]] = arith.cmpi sgt, %[[QUERIES]], %c0{{.*}}
// CHECK: scf.if %[[ARE_SOME]] {
// CHECK-COUNT-16: arith.extf {{.*}} : vector<16xf16> to vector<16xf32>
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store
func.func @pack(%q: memref<1x1x?x64xf16>, %p: memref<1x1x64x48xf32>) {
  attn.pack_query by 0.5 ins(%q : memref<1x1x?x64xf16>) outs(%p : memref<1x1x64x48xf32>)
  return
}

// -----

// Where the mask bounds the keys of a few queries, loops over keys end there: for
// the group's 16 queries, and for the value tile's 8.

// CHECK-LABEL: func @bounds
// CHECK-SAME: %[[I:[a-z0-9]*]]: index, %[[J:[a-z0-9]*]]: index
// CHECK: arith.addi %[[I]], %c15{{ }}
// CHECK: %[[KEYS:.*]] = arith.subi %{{.*}}, %[[J]]
// CHECK: %[[END:.*]] = arith.minsi %[[KEYS]], %c64 : index
// CHECK: scf.for {{.*}} to %[[END]] step %c16 iter_args
// CHECK: scf.for {{.*}} to %[[END]] step %c1 iter_args
// CHECK: arith.cmpi sge
func.func @bounds(%i: index, %j: index, %q: memref<1x1x4x16xf32>, %k: memref<1x1x64x4xf32>,
    %v: memref<1x1x64x16xf32>, %acc: memref<1x1x16x16xf32>,
    %max: memref<1x1x16xf32>, %sum: memref<1x1x16xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  attn.online_attention scale(0.125) update(all)
      ins(%q, %k, %v : memref<1x1x4x16xf32>, memref<1x1x64x4xf32>, memref<1x1x64x16xf32>)
      outs(%acc, %max, %sum : memref<1x1x16x16xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>)
      at [%c0, %c0, %i, %j] packed(%c16)
      mask {
      ^bb0(%b_: index, %h_: index, %i_: index, %j_: index):
        %keep = arith.cmpi sge, %i_, %j_ : index
        attn.yield %keep : i1
      }
  return
}

// -----

// The backward pass of a tile: blocks of at most 48 keys, whose last register
// tile may be written beyond them. Products of keys with packed queries, 8 keys
// times 3 vectors; the probabilities; products of values with packed gradients;
// the scores' gradients; and three products, each of which is added up by itself
// and then to what is there, rows beyond the last one taken to be the last. Inner
// loops take four products a step, and what is left one by one.

// CHECK-LABEL: func @backward
// CHECK-SAME: %[[PQ:[a-z0-9]*]]: memref<1x2x64x48xf32>, %[[PDO:[a-z0-9]*]]: memref<1x2x64x48xf32>
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<72x96xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<3x96xf32>
// The log-sum-exp in base 2 as two numbers, once for each query.
// CHECK:   arith.mulf {{.*}} : f64
// CHECK:   math.fma {{.*}} : f64
// CHECK:   arith.truncf {{.*}} : f64 to f32
// CHECK: scf.for {{.*}} to %{{.*}} step %c48{{ }}
// CHECK:   scf.for {{.*}} = %c0 to %c64 step %c4 iter_args
// CHECK-COUNT-96: vector.fma
// CHECK:   arith.negf
// CHECK:   arith.subf
// CHECK:   arith.addf
// CHECK:   arith.shli
// CHECK:   scf.for {{.*}} = %c0 to %c64 step %c4 iter_args
// CHECK-COUNT-96: vector.fma
// CHECK:   arith.subf
// CHECK:   arith.minsi
// CHECK:   memref.prefetch {{.*}}, write, locality<3>, data
// CHECK:   scf.for {{.*}} step %c4 iter_args(%{{.*}} = %[[ZEROS]],
// CHECK-COUNT-96: vector.fma
// CHECK:   scf.for {{.*}} step %c1 iter_args
// CHECK-COUNT-24: vector.fma
// CHECK-COUNT-24: arith.addf
// CHECK:   arith.minsi
// CHECK:   scf.for {{.*}} step %c4 iter_args
// CHECK-COUNT-96: vector.fma
// CHECK:   scf.for {{.*}} step %c1 iter_args
// CHECK-COUNT-24: vector.fma
// CHECK-COUNT-24: arith.addf
// CHECK:   arith.minsi
// CHECK:   scf.for {{.*}} step %c4 iter_args
// CHECK-COUNT-96: vector.fma
// CHECK:   scf.for {{.*}} step %c1 iter_args
// CHECK-COUNT-24: vector.fma
// CHECK-COUNT-24: arith.addf
// CHECK-NOT: vector.fma
func.func @backward(%pq: memref<1x2x64x48xf32>, %pdo: memref<1x2x64x48xf32>, %q: memref<1x1x?x64xf32>,
    %k: memref<1x1x?x64xf32>, %l: memref<1x1x?xf32>, %dq: memref<1x1x?x64xf32>, %dk: memref<1x1x?x64xf32>) {
  attn.online_backward scale(0.125) packed(%pq, %pdo : memref<1x2x64x48xf32>, memref<1x2x64x48xf32>)
      ins(%q, %q, %k, %k, %l, %l : memref<1x1x?x64xf32>, memref<1x1x?x64xf32>, memref<1x1x?x64xf32>,
          memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
      outs(%dq, %dk, %dk : memref<1x1x?x64xf32>, memref<1x1x?x64xf32>, memref<1x1x?x64xf32>)
  return
}

// -----

// Under a mask whose bounds are cheap, a group of queries computes the keys that
// it may keep, and the rest is zero; the last three products take the part of
// their depth that a register tile keeps, if there is any.

// CHECK-LABEL: func @backward_causal
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK: scf.for {{.*}} to %{{.*}} step %c48{{ }}
// CHECK:   scf.for {{.*}} = %{{.*}} to %{{.*}} step %c8{{ }}
// CHECK-COUNT-96: vector.fma
// CHECK:   arith.select
// CHECK:   vector.store %[[ZERO]], %{{.*}} : memref<72x96xf32>
// CHECK-COUNT-96: vector.fma
// CHECK:   vector.store %[[ZERO]], %{{.*}} : memref<72x96xf32>
// CHECK:   arith.maxsi
// CHECK:   scf.if
// CHECK-COUNT-120: vector.fma
// CHECK:   arith.maxsi
// CHECK:   scf.if
// CHECK-COUNT-120: vector.fma
// CHECK:   %[[OF_QUERIES:.*]] = arith.cmpi sgt
// CHECK-NEXT: scf.if %[[OF_QUERIES]]
// CHECK-COUNT-120: vector.fma
func.func @backward_causal(%pq: memref<1x2x64x48xf32>, %pdo: memref<1x2x64x48xf32>, %q: memref<1x1x?x64xf32>,
    %k: memref<1x1x?x64xf32>, %l: memref<1x1x?xf32>, %dq: memref<1x1x?x64xf32>, %dk: memref<1x1x?x64xf32>,
    %b: index, %h: index, %i: index, %j: index) {
  attn.online_backward scale(0.125) packed(%pq, %pdo : memref<1x2x64x48xf32>, memref<1x2x64x48xf32>)
      ins(%q, %q, %k, %k, %l, %l : memref<1x1x?x64xf32>, memref<1x1x?x64xf32>, memref<1x1x?x64xf32>,
          memref<1x1x?x64xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
      outs(%dq, %dk, %dk : memref<1x1x?x64xf32>, memref<1x1x?x64xf32>, memref<1x1x?x64xf32>)
      at [%b, %h, %i, %j]
      mask {
      ^bb0(%b_: index, %h_: index, %i_: index, %j_: index):
        %keep = arith.cmpi sge, %i_, %j_ : index
        attn.yield %keep : i1
      }
  return
}

// -----

// Register tiles that have parts of rows of a right operand read a copy, whose
// rows are an odd number of cache lines long: queries and their gradients once,
// keys for each block. Values are no right operand.

// CHECK-LABEL: func @backward_cut_rows
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<48x144xf32>
// CHECK-COUNT-2: memref.alloca() {alignment = 64 : i64} : memref<96x144xf32>
// CHECK-NOT: x144xf32>
// CHECK: vector.store %{{.*}} : memref<96x144xf32>
// CHECK: vector.store %{{.*}} : memref<96x144xf32>
// CHECK: scf.for {{.*}} step %c48{{ }}
// CHECK:   vector.store %{{.*}} : memref<48x144xf32>
// CHECK:   vector.fma
// CHECK-NOT: vector.store {{.*}}x144xf32>
// CHECK:   vector.load %{{.*}} : memref<96x144xf32>
func.func @backward_cut_rows(%pq: memref<1x2x128x48xf32>, %pdo: memref<1x2x128x48xf32>, %q: memref<1x1x?x128xf32>,
    %k: memref<1x1x?x128xf32>, %l: memref<1x1x?xf32>, %dq: memref<1x1x?x128xf32>, %dk: memref<1x1x?x128xf32>) {
  attn.online_backward scale(0.125) packed(%pq, %pdo : memref<1x2x128x48xf32>, memref<1x2x128x48xf32>)
      ins(%q, %q, %k, %k, %l, %l : memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x?x128xf32>,
          memref<1x1x?x128xf32>, memref<1x1x?xf32>, memref<1x1x?xf32>)
      outs(%dq, %dk, %dk : memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x?x128xf32>)
  return
}
