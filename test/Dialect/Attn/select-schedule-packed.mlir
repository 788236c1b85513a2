// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-pack-groups --attn-select-schedule=typical-rows=128 | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-pack-groups --attn-select-schedule | FileCheck %s --check-prefix=USUAL

// Few packed queries have parts in the list of their tiles: blocks are dealt so many
// items of each head as keep all multiprocessors busy, of which there are 132. What
// usually lies packed keeps them busy as it is.
// CHECK-LABEL: func @heads
// CHECK: order = longest_first, {{.*}}, blocks = dealt, {{.*}}split = 16>}
// USUAL-LABEL: func @heads
// USUAL: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>}
func.func @heads(%packed: tensor<1x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %most: index) -> tensor<1x8x?x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %k, %c0 : tensor<?x8x?x128xbf16>
  %all = tensor.dim %packed, %c2 : tensor<1x8x?x128xbf16>
  %rows = arith.minsi %most, %all : index
  %room = tensor.empty(%batch, %rows) : tensor<?x8x?x128xbf16>
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<?x8x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %packed[0, 0, %start, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<1x8x?x128xbf16> to tensor<1x8x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[%b, 0, 0, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<1x8x?x128xbf16> into tensor<?x8x?x128xbf16>
    }
  }
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x8x?x128xbf16>
  %results = tensor.empty(%all) : tensor<1x8x?x128xbf16>
  %back = scf.forall (%b) in (%batch) shared_outs(%out = %results) -> (tensor<1x8x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<?x8x?x128xbf16> to tensor<1x8x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[0, 0, %start, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<1x8x?x128xbf16> into tensor<1x8x?x128xbf16>
    }
  }
  return %back : tensor<1x8x?x128xbf16>
}

// The heads of a group are rows of one, of 8.
// CHECK-LABEL: func @groups
// CHECK: attn.attention {{.*}} mask {
// CHECK: order = longest_first, {{.*}}, blocks = dealt, {{.*}}split = 16>} : tensor<?x8x?x128xbf16>
// USUAL-LABEL: func @groups
// USUAL: tile = 192x64, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = dealt>}
func.func @groups(%packed: tensor<1x32x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %most: index) -> tensor<1x32x?x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %k, %c0 : tensor<?x8x?x128xbf16>
  %all = tensor.dim %packed, %c2 : tensor<1x32x?x128xbf16>
  %rows = arith.minsi %most, %all : index
  %room = tensor.empty(%batch, %rows) : tensor<?x32x?x128xbf16>
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<?x32x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %packed[0, 0, %start, 0] [1, 32, %count, 128] [1, 1, 1, 1] : tensor<1x32x?x128xbf16> to tensor<1x32x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[%b, 0, 0, 0] [1, 32, %count, 128] [1, 1, 1, 1] : tensor<1x32x?x128xbf16> into tensor<?x32x?x128xbf16>
    }
  }
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x32x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x32x?x128xbf16>
  %results = tensor.empty(%all) : tensor<1x32x?x128xbf16>
  %back = scf.forall (%b) in (%batch) shared_outs(%out = %results) -> (tensor<1x32x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %o[%b, 0, 0, 0] [1, 32, %count, 128] [1, 1, 1, 1] : tensor<?x32x?x128xbf16> to tensor<1x32x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[0, 0, %start, 0] [1, 32, %count, 128] [1, 1, 1, 1] : tensor<1x32x?x128xbf16> into tensor<1x32x?x128xbf16>
    }
  }
  return %back : tensor<1x32x?x128xbf16>
}

// There are 128 at most.
// CHECK-LABEL: func @one_head
// CHECK: blocks = dealt, {{.*}}split = 128>}
// USUAL-LABEL: func @one_head
// USUAL: maximum = stale>}
func.func @one_head(%packed: tensor<1x1x?x128xbf16>, %k: tensor<?x1x?x128xbf16>, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %most: index) -> tensor<1x1x?x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %k, %c0 : tensor<?x1x?x128xbf16>
  %all = tensor.dim %packed, %c2 : tensor<1x1x?x128xbf16>
  %rows = arith.minsi %most, %all : index
  %room = tensor.empty(%batch, %rows) : tensor<?x1x?x128xbf16>
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<?x1x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %packed[0, 0, %start, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<1x1x?x128xbf16> to tensor<1x1x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[%b, 0, 0, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<1x1x?x128xbf16> into tensor<?x1x?x128xbf16>
    }
  }
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x1x?x128xbf16>, tensor<?x1x?x128xbf16>, tensor<?x1x?x128xbf16> -> tensor<?x1x?x128xbf16>
  %results = tensor.empty(%all) : tensor<1x1x?x128xbf16>
  %back = scf.forall (%b) in (%batch) shared_outs(%out = %results) -> (tensor<1x1x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %o[%b, 0, 0, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<?x1x?x128xbf16> to tensor<1x1x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[0, 0, %start, 0] [1, 1, %count, 128] [1, 1, 1, 1] : tensor<1x1x?x128xbf16> into tensor<1x1x?x128xbf16>
    }
  }
  return %back : tensor<1x1x?x128xbf16>
}

// With more heads than half of the multiprocessors a tile is an item.
// CHECK-LABEL: func @many_heads
// CHECK: maximum = stale, blocks = dealt, groups = in_turn>}
// USUAL-LABEL: func @many_heads
// USUAL: maximum = stale, blocks = dealt, groups = in_turn>}
func.func @many_heads(%packed: tensor<1x80x?x128xbf16>, %k: tensor<?x80x?x128xbf16>, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %most: index) -> tensor<1x80x?x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %k, %c0 : tensor<?x80x?x128xbf16>
  %all = tensor.dim %packed, %c2 : tensor<1x80x?x128xbf16>
  %rows = arith.minsi %most, %all : index
  %room = tensor.empty(%batch, %rows) : tensor<?x80x?x128xbf16>
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<?x80x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %packed[0, 0, %start, 0] [1, 80, %count, 128] [1, 1, 1, 1] : tensor<1x80x?x128xbf16> to tensor<1x80x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[%b, 0, 0, 0] [1, 80, %count, 128] [1, 1, 1, 1] : tensor<1x80x?x128xbf16> into tensor<?x80x?x128xbf16>
    }
  }
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x80x?x128xbf16>, tensor<?x80x?x128xbf16>, tensor<?x80x?x128xbf16> -> tensor<?x80x?x128xbf16>
  %results = tensor.empty(%all) : tensor<1x80x?x128xbf16>
  %back = scf.forall (%b) in (%batch) shared_outs(%out = %results) -> (tensor<1x80x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %o[%b, 0, 0, 0] [1, 80, %count, 128] [1, 1, 1, 1] : tensor<?x80x?x128xbf16> to tensor<1x80x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[0, 0, %start, 0] [1, 80, %count, 128] [1, 1, 1, 1] : tensor<1x80x?x128xbf16> into tensor<1x80x?x128xbf16>
    }
  }
  return %back : tensor<1x80x?x128xbf16>
}

// Queries that are computed on the way, and those of a batch, do not lie packed: all of
// their tiles are split, by a grid of parts.
// CHECK-LABEL: func @computed
// CHECK: tile = 128x128, order = longest_first, warps = 8, stages = 2, split = 16>}
// USUAL-LABEL: func @computed
// USUAL: maximum = stale, blocks = dealt, groups = in_turn>}
func.func @computed(%packed: tensor<1x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %starts: tensor<?xi32>, %lengths: tensor<?xi32>, %most: index) -> tensor<1x8x?x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %k, %c0 : tensor<?x8x?x128xbf16>
  %all = tensor.dim %packed, %c2 : tensor<1x8x?x128xbf16>
  %rows = arith.minsi %most, %all : index
  %room = tensor.empty(%batch, %rows) : tensor<?x8x?x128xbf16>
  %q = scf.forall (%b) in (%batch) shared_outs(%out = %room) -> (tensor<?x8x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %packed[0, 0, %start, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<1x8x?x128xbf16> to tensor<1x8x?x128xbf16>
    %negated = arith.negf %slice : tensor<1x8x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %negated into %out[%b, 0, 0, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<1x8x?x128xbf16> into tensor<?x8x?x128xbf16>
    }
  }
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x8x?x128xbf16>
  %results = tensor.empty(%all) : tensor<1x8x?x128xbf16>
  %back = scf.forall (%b) in (%batch) shared_outs(%out = %results) -> (tensor<1x8x?x128xbf16>) {
    %next = arith.addi %b, %c1 : index
    %first = tensor.extract %starts[%b] : tensor<?xi32>
    %start = arith.index_cast %first : i32 to index
    %last = tensor.extract %starts[%next] : tensor<?xi32>
    %end = arith.index_cast %last : i32 to index
    %more = arith.subi %end, %start : index
    %count = arith.minsi %more, %rows : index
    %slice = tensor.extract_slice %o[%b, 0, 0, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<?x8x?x128xbf16> to tensor<1x8x?x128xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %slice into %out[0, 0, %start, 0] [1, 8, %count, 128] [1, 1, 1, 1] : tensor<1x8x?x128xbf16> into tensor<1x8x?x128xbf16>
    }
  }
  return %back : tensor<1x8x?x128xbf16>
}

// CHECK-LABEL: func @batch
// CHECK: tile = 128x128, order = longest_first, warps = 8, stages = 2, split = 16>}
// USUAL-LABEL: func @batch
// USUAL: maximum = stale, blocks = dealt, groups = in_turn>}
func.func @batch(%q: tensor<?x8x?x128xbf16>, %k: tensor<?x8x?x128xbf16>, %lengths: tensor<?xi32>) -> tensor<?x8x?x128xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %used32 = tensor.extract %lengths[%b] : tensor<?xi32>
      %used = arith.index_cast %used32 : i32 to index
      %last = arith.addi %i, %used : index
      %keep = arith.cmpi sge, %last, %j : index
      attn.yield %keep : i1
    } : tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x8x?x128xbf16>
  return %o : tensor<?x8x?x128xbf16>
}
