// RUN: fovea-opt %s --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// Nearly all items are a whole tile, which all of them store, of no row where one is a
// part. What a part stores beside that is in one branch, with what only that needs: its
// log-sum-exp and what this is rounded by are no work of the others.
// CHECK-LABEL: func @joined
// CHECK: tile.launch kernel "attention" {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x2x64x64xbf16>, tensor<8x64x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>)
// CHECK-NEXT: ^bb0(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<4x2x64x64xbf16, {{[^%]*}}, %[[SUMS:[^ ]*]]: memref<8x64x64xf32, {{[^%]*}}, %[[LSES:[^ ]*]]: memref<8x64xf32, {{[^%]*}}, %[[RESTS:[^ ]*]]: memref<8x64xf32,
// CHECK-NOT: math.log2
// CHECK-NOT: tile.store
// CHECK: %[[ONLY:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK-NOT: math.log2
// CHECK-NOT: tile.store
// CHECK: %[[NONE:.*]] = arith.select %[[ONLY]], %c64, %c0
// CHECK-NOT: math.log2
// CHECK-NOT: tile.store
// CHECK: %[[COUNT:.*]] = arith.minsi %{{.*}}, %[[NONE]]
// CHECK-NOT: math.log2
// CHECK-NOT: tile.store
// CHECK: scf.if %[[ONLY]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[LSE:.*]] = tile.map ins(%[[MAX:.*]], %[[SUM:.*]] :
// CHECK: math.log2
// CHECK: %[[REST:.*]] = tile.map ins(%[[MAX]], %[[SUM]], %[[LSE]] :
// CHECK: math.log2
// CHECK: tile.store %[[ROWS:[^,]*]], %[[SUMS]][%[[ITEM:.*]], %c0, %c0] dims [1, 2] : !tile.fragment<64x64xf32>
// CHECK-NEXT: tile.store %[[LSE]], %[[LSES]][%[[ITEM]], %c0] dims [1] : !tile.fragment<64xf32>
// CHECK-NEXT: tile.store %[[REST]], %[[RESTS]][%[[ITEM]], %c0] dims [1] : !tile.fragment<64xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[NARROW:.*]] = tile.map exact ins(%[[ROWS]] : !tile.fragment<64x64xf32>)
// CHECK: tile.store %[[NARROW]], %[[OUT]][%{{.*}}, %{{.*}}, %c0, %c0] dims [2, 3] valid(%[[COUNT]]) : !tile.fragment<64x64xbf16>
// CHECK-NOT: tile.store
// CHECK: } -> tensor<
func.func @joined(%q: tensor<4x2x64x64xbf16>, %k: tensor<4x2x256x64xbf16>, %counts: tensor<4xindex>, %ends: tensor<4xindex>, %out: tensor<4x2x64x64xbf16>)
    -> (tensor<4x2x64x64xbf16>, tensor<8x64x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %room = tensor.empty() : tensor<8x64x64xf32>
  %room1 = tensor.empty() : tensor<8x64xf32>
  %all:4 = scf.forall (%b, %h) in (4, 2) shared_outs(%o = %out, %p = %room, %l = %room1, %r = %room1)
      -> (tensor<4x2x64x64xbf16>, tensor<8x64x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>) {
    %query = tensor.extract_slice %q[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<4x2x64x64xbf16> to tensor<1x1x64x64xbf16>
    %rows = tensor.empty() : tensor<1x1x64x64xf32>
    %numbers = tensor.empty() : tensor<1x1x64xf32>
    %acc0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max0 = linalg.fill ins(%least : f32) outs(%numbers : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
    %sum0 = linalg.fill ins(%zero : f32) outs(%numbers : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
    %pass:3 = scf.for %j = %c0 to %c256 step %c64 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) {
      %keys = tensor.extract_slice %k[%b, %h, %j, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<4x2x256x64xbf16> to tensor<1x1x64x64xbf16>
      %next:3 = attn.online_attention scale(0.125) update(all)
        ins(%query, %keys, %keys : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>)
        outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) at[%b, %h, %c0, %j]
        {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
        -> tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
      scf.yield %next#0, %next#1, %next#2 : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
    }
    %count = tensor.extract %counts[%b] : tensor<4xindex>
    %only = arith.cmpi eq, %count, %c1 : index
    %end = tensor.extract %ends[%b] : tensor<4xindex>
    %most = arith.select %only, %c64, %c0 : index
    %whole = arith.minsi %end, %most : index
    %part = arith.select %only, %c0, %c64 : index
    %first = arith.muli %b, %c2 : index
    %item = arith.addi %first, %h : index
    %sums:3 = attn.finalize ins(%pass#0, %pass#1, %pass#2 : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      outs(%rows, %numbers, %numbers : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      -> tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
    %narrow0 = tensor.empty() : tensor<1x1x64x64xbf16>
    %narrow = linalg.generic {indexing_maps = [affine_map<(b, h, i, d) -> (b, h, i, d)>, affine_map<(b, h, i, d) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums#0 : tensor<1x1x64x64xf32>) outs(%narrow0 : tensor<1x1x64x64xbf16>) {
    ^bb0(%x: f32, %old: bf16):
      %y = arith.truncf %x : f32 to bf16
      linalg.yield %y : bf16
    } -> tensor<1x1x64x64xbf16>
    %w = tensor.extract_slice %narrow[0, 0, 0, 0] [1, 1, %whole, 64] [1, 1, 1, 1] : tensor<1x1x64x64xbf16> to tensor<1x1x?x64xbf16>
    %t0 = tensor.extract_slice %sums#0[0, 0, 0, 0] [1, 1, %part, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> to tensor<1x1x?x64xf32>
    %p0 = tensor.collapse_shape %t0 [[0, 1], [2], [3]] : tensor<1x1x?x64xf32> into tensor<1x?x64xf32>
    %t1 = tensor.extract_slice %sums#1[0, 0, 0] [1, 1, %part] [1, 1, 1] : tensor<1x1x64xf32> to tensor<1x1x?xf32>
    %p1 = tensor.collapse_shape %t1 [[0, 1], [2]] : tensor<1x1x?xf32> into tensor<1x?xf32>
    %t2 = tensor.extract_slice %sums#2[0, 0, 0] [1, 1, %part] [1, 1, 1] : tensor<1x1x64xf32> to tensor<1x1x?xf32>
    %p2 = tensor.collapse_shape %t2 [[0, 1], [2]] : tensor<1x1x?xf32> into tensor<1x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %w into %o[%b, %h, 0, 0] [1, 1, %whole, 64] [1, 1, 1, 1] : tensor<1x1x?x64xbf16> into tensor<4x2x64x64xbf16>
      tensor.parallel_insert_slice %p0 into %p[%item, 0, 0] [1, %part, 64] [1, 1, 1] : tensor<1x?x64xf32> into tensor<8x64x64xf32>
      tensor.parallel_insert_slice %p1 into %l[%item, 0] [1, %part] [1, 1] : tensor<1x?xf32> into tensor<8x64xf32>
      tensor.parallel_insert_slice %p2 into %r[%item, 0] [1, %part] [1, 1] : tensor<1x?xf32> into tensor<8x64xf32>
    }
  }
  return %all#0, %all#1, %all#2, %all#3 : tensor<4x2x64x64xbf16>, tensor<8x64x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>
}

// -----

// What all store is computed in front of the branch, also where a part stores it, too.
// CHECK-LABEL: func @shared_term
// CHECK: tile.launch
// CHECK: %[[LSE:.*]] = tile.map ins(%[[MAX:[^, ]*#1]], %[[SUM:.*]] :
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.log2
// CHECK-NOT: math.log2
// CHECK: tile.store %[[LSE]], %{{.*}} dims [2] valid(%{{.*}}) : !tile.fragment<64xf32>, memref<4x2x64xf32
// CHECK-NOT: math.log2
// CHECK: scf.if %{{[^ ]*}} {
// CHECK-NEXT: } else {
// CHECK: %[[REST:.*]] = tile.map ins(%[[MAX]], %[[SUM]], %[[LSE]] :
// CHECK: math.log2
// CHECK: tile.store %{{.*}} : !tile.fragment<64x64xf32>
// CHECK-NEXT: tile.store %[[LSE]], %{{.*}} : !tile.fragment<64xf32>
// CHECK-NEXT: tile.store %[[REST]], %{{.*}} : !tile.fragment<64xf32>
// CHECK-NEXT: }
// CHECK-NOT: tile.store
// CHECK: } -> tensor<
func.func @shared_term(%q: tensor<4x2x64x64xbf16>, %k: tensor<4x2x256x64xbf16>, %counts: tensor<4xindex>, %ends: tensor<4xindex>, %out: tensor<4x2x64xf32>)
    -> (tensor<4x2x64xf32>, tensor<8x64x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %room = tensor.empty() : tensor<8x64x64xf32>
  %room1 = tensor.empty() : tensor<8x64xf32>
  %all:4 = scf.forall (%b, %h) in (4, 2) shared_outs(%o = %out, %p = %room, %l = %room1, %r = %room1)
      -> (tensor<4x2x64xf32>, tensor<8x64x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>) {
    %query = tensor.extract_slice %q[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<4x2x64x64xbf16> to tensor<1x1x64x64xbf16>
    %rows = tensor.empty() : tensor<1x1x64x64xf32>
    %numbers = tensor.empty() : tensor<1x1x64xf32>
    %acc0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max0 = linalg.fill ins(%least : f32) outs(%numbers : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
    %sum0 = linalg.fill ins(%zero : f32) outs(%numbers : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
    %pass:3 = scf.for %j = %c0 to %c256 step %c64 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) {
      %keys = tensor.extract_slice %k[%b, %h, %j, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<4x2x256x64xbf16> to tensor<1x1x64x64xbf16>
      %next:3 = attn.online_attention scale(0.125) update(all)
        ins(%query, %keys, %keys : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>)
        outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) at[%b, %h, %c0, %j]
        {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
        -> tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
      scf.yield %next#0, %next#1, %next#2 : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
    }
    %count = tensor.extract %counts[%b] : tensor<4xindex>
    %only = arith.cmpi eq, %count, %c1 : index
    %end = tensor.extract %ends[%b] : tensor<4xindex>
    %most = arith.select %only, %c64, %c0 : index
    %whole = arith.minsi %end, %most : index
    %part = arith.select %only, %c0, %c64 : index
    %first = arith.muli %b, %c2 : index
    %item = arith.addi %first, %h : index
    %sums:3 = attn.finalize ins(%pass#0, %pass#1, %pass#2 : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      outs(%rows, %numbers, %numbers : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      -> tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
    %w = tensor.extract_slice %sums#1[0, 0, 0] [1, 1, %whole] [1, 1, 1] : tensor<1x1x64xf32> to tensor<1x1x?xf32>
    %t0 = tensor.extract_slice %sums#0[0, 0, 0, 0] [1, 1, %part, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> to tensor<1x1x?x64xf32>
    %p0 = tensor.collapse_shape %t0 [[0, 1], [2], [3]] : tensor<1x1x?x64xf32> into tensor<1x?x64xf32>
    %t1 = tensor.extract_slice %sums#1[0, 0, 0] [1, 1, %part] [1, 1, 1] : tensor<1x1x64xf32> to tensor<1x1x?xf32>
    %p1 = tensor.collapse_shape %t1 [[0, 1], [2]] : tensor<1x1x?xf32> into tensor<1x?xf32>
    %t2 = tensor.extract_slice %sums#2[0, 0, 0] [1, 1, %part] [1, 1, 1] : tensor<1x1x64xf32> to tensor<1x1x?xf32>
    %p2 = tensor.collapse_shape %t2 [[0, 1], [2]] : tensor<1x1x?xf32> into tensor<1x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %w into %o[%b, %h, 0] [1, 1, %whole] [1, 1, 1] : tensor<1x1x?xf32> into tensor<4x2x64xf32>
      tensor.parallel_insert_slice %p0 into %p[%item, 0, 0] [1, %part, 64] [1, 1, 1] : tensor<1x?x64xf32> into tensor<8x64x64xf32>
      tensor.parallel_insert_slice %p1 into %l[%item, 0] [1, %part] [1, 1] : tensor<1x?xf32> into tensor<8x64xf32>
      tensor.parallel_insert_slice %p2 into %r[%item, 0] [1, %part] [1, 1] : tensor<1x?xf32> into tensor<8x64xf32>
    }
  }
  return %all#0, %all#1, %all#2, %all#3 : tensor<4x2x64xf32>, tensor<8x64x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>
}

// -----

// Rows of results that loops alone read, of memory of the compiler's own, begin at
// multiples of 16 bytes where each has a multiple of that, and the tile's begin with
// them. Others may begin anywhere: those of a result of the function, of a tensor that
// there was, of 66 numbers, and from the fifth number on. One number for each row is no
// vector.
// CHECK-LABEL: func @aligned
// CHECK: tile.launch
// CHECK-NEXT: ^bb0(
// CHECK-SAME: %[[READ:[^ ]*]]: memref<4x2x64x64xf32, {{[^%]*}}, %[[RETURNED:[^ ]*]]: memref<4x2x64x64xf32, {{[^%]*}}, %[[GIVEN:[^ ]*]]: memref<4x2x64x64xf32, {{[^%]*}}, %[[ODD:[^ ]*]]: memref<4x2x64x66xf32, {{[^%]*}}, %[[BEHIND:[^ ]*]]: memref<4x2x64x68xf32, {{[^%]*}}, %[[NUMBERS:[^ ]*]]: memref<4x2x64xf32,
// CHECK-DAG: tile.store %{{.*}}, %[[READ]][%{{.*}}, %{{.*}}, %c0, %c0] dims [2, 3] aligned : !tile.fragment<64x64xf32>
// CHECK-DAG: tile.store %{{.*}}, %[[RETURNED]][%{{.*}}, %{{.*}}, %c0, %c0] dims [2, 3] : !tile.fragment<64x64xf32>
// CHECK-DAG: tile.store %{{.*}}, %[[GIVEN]][%{{.*}}, %{{.*}}, %c0, %c0] dims [2, 3] : !tile.fragment<64x64xf32>
// CHECK-DAG: tile.store %{{.*}}, %[[ODD]][%{{.*}}, %{{.*}}, %c0, %c0] dims [2, 3] : !tile.fragment<64x64xf32>
// CHECK-DAG: tile.store %{{.*}}, %[[BEHIND]][%{{.*}}, %{{.*}}, %c0, %c4] dims [2, 3] : !tile.fragment<64x64xf32>
// CHECK-DAG: tile.store %{{.*}}, %[[NUMBERS]][%{{.*}}, %{{.*}}, %c0] dims [2] : !tile.fragment<64xf32>
// CHECK: } -> tensor<
func.func @aligned(%q: tensor<4x2x64x64xbf16>, %k: tensor<4x2x256x64xbf16>, %given: tensor<4x2x64x64xf32>, %out: tensor<4x2xf32>)
    -> (tensor<4x2xf32>, tensor<4x2x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %room = tensor.empty() : tensor<4x2x64x64xf32>
  %room66 = tensor.empty() : tensor<4x2x64x66xf32>
  %room68 = tensor.empty() : tensor<4x2x64x68xf32>
  %room1 = tensor.empty() : tensor<4x2x64xf32>
  %all:6 = scf.forall (%b, %h) in (4, 2)
      shared_outs(%read = %room, %returned = %room, %own = %given, %odd = %room66, %behind = %room68, %lses = %room1)
      -> (tensor<4x2x64x64xf32>, tensor<4x2x64x64xf32>, tensor<4x2x64x64xf32>, tensor<4x2x64x66xf32>, tensor<4x2x64x68xf32>, tensor<4x2x64xf32>) {
    %query = tensor.extract_slice %q[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<4x2x64x64xbf16> to tensor<1x1x64x64xbf16>
    %rows = tensor.empty() : tensor<1x1x64x64xf32>
    %numbers = tensor.empty() : tensor<1x1x64xf32>
    %acc0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    %max0 = linalg.fill ins(%least : f32) outs(%numbers : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
    %sum0 = linalg.fill ins(%zero : f32) outs(%numbers : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
    %pass:3 = scf.for %j = %c0 to %c256 step %c64 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) {
      %keys = tensor.extract_slice %k[%b, %h, %j, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<4x2x256x64xbf16> to tensor<1x1x64x64xbf16>
      %next:3 = attn.online_attention scale(0.125) update(all)
        ins(%query, %keys, %keys : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>)
        outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) at[%b, %h, %c0, %j]
        {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
        -> tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
      scf.yield %next#0, %next#1, %next#2 : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
    }
    %sums:2 = attn.finalize ins(%pass#0, %pass#1, %pass#2 : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      outs(%rows, %numbers : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>) -> tensor<1x1x64x64xf32>, tensor<1x1x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sums#0 into %read[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> into tensor<4x2x64x64xf32>
      tensor.parallel_insert_slice %sums#0 into %returned[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> into tensor<4x2x64x64xf32>
      tensor.parallel_insert_slice %sums#0 into %own[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> into tensor<4x2x64x64xf32>
      tensor.parallel_insert_slice %sums#0 into %odd[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> into tensor<4x2x64x66xf32>
      tensor.parallel_insert_slice %sums#0 into %behind[%b, %h, 0, 4] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x64xf32> into tensor<4x2x64x68xf32>
      tensor.parallel_insert_slice %sums#1 into %lses[%b, %h, 0] [1, 1, 64] [1, 1, 1] : tensor<1x1x64xf32> into tensor<4x2x64xf32>
    }
  }
  %sum = scf.forall (%b, %h) in (4, 2) shared_outs(%o = %out) -> (tensor<4x2xf32>) {
    %x0 = tensor.extract_slice %all#0[%b, %h, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<4x2x64x64xf32> to tensor<1x1xf32>
    %x2 = tensor.extract_slice %all#2[%b, %h, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<4x2x64x64xf32> to tensor<1x1xf32>
    %x3 = tensor.extract_slice %all#3[%b, %h, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<4x2x64x66xf32> to tensor<1x1xf32>
    %x4 = tensor.extract_slice %all#4[%b, %h, 0, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<4x2x64x68xf32> to tensor<1x1xf32>
    %x5 = tensor.extract_slice %all#5[%b, %h, 0] [1, 1, 1] [1, 1, 1] : tensor<4x2x64xf32> to tensor<1x1xf32>
    %place = tensor.extract_slice %o[%b, %h] [1, 1] [1, 1] : tensor<4x2xf32> to tensor<1x1xf32>
    %added = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x0, %x2, %x3, %x4, %x5 : tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>) outs(%place : tensor<1x1xf32>) {
    ^bb0(%a: f32, %c: f32, %d: f32, %e: f32, %f: f32, %old: f32):
      %ac = arith.addf %a, %c : f32
      %de = arith.addf %d, %e : f32
      %acde = arith.addf %ac, %de : f32
      %sum = arith.addf %acde, %f : f32
      linalg.yield %sum : f32
    } -> tensor<1x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %added into %o[%b, %h] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<4x2xf32>
    }
  }
  return %sum, %all#1 : tensor<4x2xf32>, tensor<4x2x64x64xf32>
}
