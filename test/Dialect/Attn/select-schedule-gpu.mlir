// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule \
// RUN:   --remarks-filter=attn-select-schedule 2>%t | FileCheck %s --check-prefix=SM90
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --attn-select-schedule | FileCheck %s --check-prefix=SM80
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule=typical-length=1024 | FileCheck %s --check-prefix=SHORT
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule=typical-rows=128 | FileCheck %s --check-prefix=ROWS

// Three warp groups, with K and V in four stages: 176 KiB of shared memory. By
// WGMMA, steps subtract an earlier maximum, and there is memory for a result on
// its way out while a block computes the next tile.
// Tiles take the same time, so that blocks share those of the last round.
// SM90-LABEL: func @d128(
// SM90: tile = 192x64, order = linear, warps = 12, stages = 4, maximum = stale, blocks = shared>
// Where lengths are short, tiles of 192 queries are filled badly.
// SHORT-LABEL: func @d128(
// SHORT: tile = 128x128, order = linear, warps = 8, stages = 2, maximum = stale>
// SM80-LABEL: func @d128(
// SM80: warps = 8, stages = 2>
func.func @d128(%q: tensor<2x16x?x128xbf16>) -> tensor<2x16x?x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16> -> tensor<2x16x?x128xbf16>
  return %o : tensor<2x16x?x128xbf16>
}

// Under a mask, too: a warp group passes by what its own rows do not need. Tiles take
// more or less time, so that blocks are dealt them.
// SM90-LABEL: func @d128_masked
// SM90: tile = 192x64, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = dealt>
func.func @d128_masked(%q: tensor<2x16x?x128xbf16>) -> tensor<2x16x?x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16> -> tensor<2x16x?x128xbf16>
  return %o : tensor<2x16x?x128xbf16>
}

// Wide heads are not dealt tiles.
// SM90-LABEL: func @d256_masked
// SM90: order = longest_first, {{.*}}, blocks = persistent>
func.func @d256_masked(%q: tensor<2x8x?x256xbf16>) -> tensor<2x8x?x256xbf16> {
  %o = attn.attention %q, %q, %q scale(0.0625) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x8x?x256xbf16>, tensor<2x8x?x256xbf16>, tensor<2x8x?x256xbf16> -> tensor<2x8x?x256xbf16>
  return %o : tensor<2x8x?x256xbf16>
}

// Two warp groups, where tiles are tested: of those in a list none is passed by.
// SM90-LABEL: func @d128_documents
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>
func.func @d128_documents(%q: tensor<2x16x?x128xbf16>, %ids: tensor<?xi64>) -> tensor<2x16x?x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %seen = arith.cmpi sge, %i, %j : index
    %x = tensor.extract %ids[%i] : tensor<?xi64>
    %y = tensor.extract %ids[%j] : tensor<?xi64>
    %same = arith.cmpi eq, %x, %y : i64
    %keep = arith.andi %seen, %same : i1
    attn.yield %keep : i1
  } : tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16> -> tensor<2x16x?x128xbf16>
  return %o : tensor<2x16x?x128xbf16>
}

// Dropout needs the registers.
// SM90-LABEL: func @dropout
// SM90: schedule =
// SM90-NOT: maximum
// SM90-LABEL: func @d64_masked
func.func @dropout(%q: tensor<2x16x?x128xbf16>, %seed: i64) -> tensor<2x16x?x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) dropout(0.1, %seed, %seed) : tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16>, tensor<2x16x?x128xbf16> -> tensor<2x16x?x128xbf16>
  return %o : tensor<2x16x?x128xbf16>
}

// The softmax takes longer than the products: four warp groups, which have no
// registers for products beside softmax.
// SM90: tile = 256x64, order = longest_first, warps = 16, stages = 4, maximum = stale, blocks = dealt, products = alternating>
// SM80-LABEL: func @d64_masked
// SM80: order = longest_first, warps = {{4|8}}, stages = 2
func.func @d64_masked(%q: tensor<2x16x?x64xf16>) -> tensor<2x16x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16>, tensor<2x16x?x64xf16> -> tensor<2x16x?x64xf16>
  return %o : tensor<2x16x?x64xf16>
}

// Short tiles, whose starts and ends would show. Groups that have the same steps issue
// their products in turn; those under the mask above do not.
// Few queries: what begins and ends a tile takes less than where keys are many, so that
// blocks have several; they are dealt where a head has two tiles, or one is cut, but not
// where four are whole.
// SM90-LABEL: func @short_causal
// SM90: schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 4, maximum = stale, blocks = dealt>}
// SM90: schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 4, maximum = stale, blocks = dealt>}
// SM90: schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 4, maximum = stale, blocks = dealt>}
// SM90: schedule = #attn.schedule<tile = 128x64, order = longest_first, warps = 8, stages = 4, maximum = stale, blocks = persistent>}
func.func @short_causal(%n: tensor<128x32x128x64xbf16>, %q: tensor<64x16x256x128xbf16>, %r: tensor<28x16x577x128xbf16>, %s: tensor<32x16x512x128xbf16>) -> (tensor<128x32x128x64xbf16>, tensor<64x16x256x128xbf16>, tensor<28x16x577x128xbf16>, tensor<32x16x512x128xbf16>) {
  %a = attn.attention %n, %n, %n scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<128x32x128x64xbf16>, tensor<128x32x128x64xbf16>, tensor<128x32x128x64xbf16> -> tensor<128x32x128x64xbf16>
  %c = attn.attention %q, %q, %q scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<64x16x256x128xbf16>, tensor<64x16x256x128xbf16>, tensor<64x16x256x128xbf16> -> tensor<64x16x256x128xbf16>
  %d = attn.attention %r, %r, %r scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<28x16x577x128xbf16>, tensor<28x16x577x128xbf16>, tensor<28x16x577x128xbf16> -> tensor<28x16x577x128xbf16>
  %e = attn.attention %s, %s, %s scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<32x16x512x128xbf16>, tensor<32x16x512x128xbf16>, tensor<32x16x512x128xbf16> -> tensor<32x16x512x128xbf16>
  return %a, %c, %d, %e : tensor<128x32x128x64xbf16>, tensor<64x16x256x128xbf16>, tensor<28x16x577x128xbf16>, tensor<32x16x512x128xbf16>
}

// Of any length, the tile of keys that may be cut comes first.
// SM90-LABEL: func @d64_any
// SM90: schedule = #attn.schedule<tile = 256x64, order = linear, warps = 16, stages = 4, maximum = stale, keys = descending, blocks = shared, products = alternating, groups = in_turn>}
// SM80-LABEL: func @d64_any
// SM80-NOT: descending
func.func @d64_any(%q: tensor<?x32x?x64xf16>) -> tensor<?x32x?x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16> -> tensor<?x32x?x64xf16>
  return %o : tensor<?x32x?x64xf16>
}

// SM90-LABEL: func @d64_short
// SM90: tile = 256x64, order = linear, warps = 16, stages = 4, maximum = stale, blocks = persistent, products = alternating, groups = in_turn>
func.func @d64_short(%q: tensor<16x32x1024x64xf16>) -> tensor<16x32x1024x64xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<16x32x1024x64xf16>, tensor<16x32x1024x64xf16>, tensor<16x32x1024x64xf16> -> tensor<16x32x1024x64xf16>
  return %o : tensor<16x32x1024x64xf16>
}

// No more tiles than multiprocessors: blocks are not persistent.
// SM90-LABEL: func @few
// SM90: tile = 128x128, order = linear, warps = 8, stages = 2, maximum = stale>
func.func @few(%q: tensor<1x4x4096x128xf16>) -> tensor<1x4x4096x128xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<1x4x4096x128xf16>, tensor<1x4x4096x128xf16>, tensor<1x4x4096x128xf16> -> tensor<1x4x4096x128xf16>
  return %o : tensor<1x4x4096x128xf16>
}

// Sequences have lengths, which may differ, so tiles are dealt, also where few of each
// head are known.
// SM90-LABEL: func @lengths
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>
func.func @lengths(%r: tensor<16x32x1024x128xf16>, %lengths: tensor<16xi32>) -> tensor<16x32x1024x128xf16> {
  %d = attn.attention %r, %r, %r scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<16xi32>
    %y = arith.index_cast %j : index to i32
    %keep = arith.cmpi slt, %y, %x : i32
    attn.yield %keep : i1
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  return %d : tensor<16x32x1024x128xf16>
}

// Any number of queries that were added to caches with lengths: tiles of 192 queries
// are filled badly by few, and a batch has many of them. Those of wide heads are not
// dealt. Without lengths a sequence has more queries.
// Few of them, of one sequence, leave multiprocessors idle: keys are split.
// ROWS-LABEL: func @added
// ROWS: tile = 128x128, order = longest_first, warps = 8, stages = 2, split = 4>
// SM90-LABEL: func @added
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>
// SM90: tile = 256x64, order = longest_first, warps = 16, stages = 4, maximum = stale, blocks = dealt, products = alternating>
// SM90: tile = 128x64, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent>
// SM90: tile = 192x64, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = dealt>
!wide = tensor<?x32x?x128xf16>
!wideKeys = tensor<?x8x?x128xf16>
!narrow = tensor<?x32x?x64xf16>
!narrowKeys = tensor<?x8x?x64xf16>
!widest = tensor<?x32x?x256xf16>
!widestKeys = tensor<?x8x?x256xf16>
func.func @added(%q: !wide, %k: !wideKeys, %r: !narrow, %l: !narrowKeys, %s: !widest, %m: !widestKeys, %lengths: tensor<?xi32>, %queries: index) -> (!wide, !narrow, !widest, !wide) {
  %a = attn.attention %q, %k, %k scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<?xi32>
    %y = arith.index_cast %x : i32 to index
    %before = arith.subi %y, %queries : index
    %place = arith.addi %i, %before : index
    %keep = arith.cmpi sge, %place, %j : index
    attn.yield %keep : i1
  } : !wide, !wideKeys, !wideKeys -> !wide
  %c = attn.attention %r, %l, %l scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<?xi32>
    %y = arith.index_cast %x : i32 to index
    %before = arith.subi %y, %queries : index
    %place = arith.addi %i, %before : index
    %keep = arith.cmpi sge, %place, %j : index
    attn.yield %keep : i1
  } : !narrow, !narrowKeys, !narrowKeys -> !narrow
  %d = attn.attention %s, %m, %m scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %lengths[%b] : tensor<?xi32>
    %y = arith.index_cast %x : i32 to index
    %before = arith.subi %y, %queries : index
    %place = arith.addi %i, %before : index
    %keep = arith.cmpi sge, %place, %j : index
    attn.yield %keep : i1
  } : !widest, !widestKeys, !widestKeys -> !widest
  %e = attn.attention %q, %k, %k scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : !wide, !wideKeys, !wideKeys -> !wide
  return %a, %c, %d, %e : !wide, !narrow, !widest, !wide
}

// Warp groups end their loops by their own queries under a causal mask; the first
// key of a window is one for all of a tile's groups, and all tiles have as many keys.
// SM90: tile = 192x64, order = longest_first, warps = 12, stages = 4, maximum = stale, blocks = dealt>
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent, groups = in_turn>
func.func @edges(%r: tensor<8x16x2048x128xf16>, %s: tensor<4x16x4096x128xf16>) -> (tensor<8x16x2048x128xf16>, tensor<4x16x4096x128xf16>) {
  %c = attn.attention %r, %r, %r scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<8x16x2048x128xf16>, tensor<8x16x2048x128xf16>, tensor<8x16x2048x128xf16> -> tensor<8x16x2048x128xf16>
  %w = attn.attention %s, %s, %s scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %before = arith.cmpi sge, %i, %j : index
    %width = arith.constant 1024 : index
    %first = arith.subi %i, %width : index
    %near = arith.cmpi slt, %first, %j : index
    %keep = arith.andi %before, %near : i1
    attn.yield %keep : i1
  } : tensor<4x16x4096x128xf16>, tensor<4x16x4096x128xf16>, tensor<4x16x4096x128xf16> -> tensor<4x16x4096x128xf16>
  return %c, %w : tensor<8x16x2048x128xf16>, tensor<4x16x4096x128xf16>
}

// Where a mask reads tensors at positions, queries are expected to see the keys of
// one of many sequences, also of long operands; not where a tensor has what it keeps.
// SM90-LABEL: func @long_documents
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = dealt, groups = in_turn>
// SM90: tile = 192x64, {{.*}}warps = 12
func.func @long_documents(%r: tensor<2x16x8192x128xf16>, %ids: tensor<8192xi32>) -> (tensor<2x16x8192x128xf16>, tensor<2x16x8192x128xf16>) {
  %d = attn.attention %r, %r, %r scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<8192xi32>
    %y = tensor.extract %ids[%j] : tensor<8192xi32>
    %keep = arith.cmpi eq, %x, %y : i32
    attn.yield %keep : i1
  } : tensor<2x16x8192x128xf16>, tensor<2x16x8192x128xf16>, tensor<2x16x8192x128xf16> -> tensor<2x16x8192x128xf16>
  %w = attn.attention %r, %r, %r scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x16x8192x128xf16>, tensor<2x16x8192x128xf16>, tensor<2x16x8192x128xf16> -> tensor<2x16x8192x128xf16>
  return %d, %w : tensor<2x16x8192x128xf16>, tensor<2x16x8192x128xf16>
}

// A mask that reads tensors at the query alone may be that of packed sequences.
// SM90-LABEL: func @packed
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, queries = sequences, blocks = dealt, groups = in_turn>
func.func @packed(%r: tensor<1x16x?x128xf16>, %end: tensor<?xi32>) -> tensor<1x16x?x128xf16> {
  %d = attn.attention %r, %r, %r scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %end[%i] : tensor<?xi32>
    %n = arith.index_cast %x : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<1x16x?x128xf16>, tensor<1x16x?x128xf16>, tensor<1x16x?x128xf16> -> tensor<1x16x?x128xf16>
  return %d : tensor<1x16x?x128xf16>
}

// A mask that reads tensors is applied to few tiles, and needs no registers beside
// the other tiles' products. Few tiles of a known number are not dealt.
// SM90-LABEL: func @documents
// SM90: tile = 128x128, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent, groups = in_turn>
func.func @documents(%r: tensor<16x32x1024x128xf16>, %ids: tensor<1024xi32>) -> tensor<16x32x1024x128xf16> {
  %d = attn.attention %r, %r, %r scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<1024xi32>
    %y = tensor.extract %ids[%j] : tensor<1024xi32>
    %keep = arith.cmpi eq, %x, %y : i32
    attn.yield %keep : i1
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  return %d : tensor<16x32x1024x128xf16>
}

// Tiles that fill whole rounds need not be shared.
// SM90-LABEL: func @rounds
// SM90: blocks = persistent>
func.func @rounds(%q: tensor<1x12x8448x128xbf16>) -> tensor<1x12x8448x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<1x12x8448x128xbf16>, tensor<1x12x8448x128xbf16>, tensor<1x12x8448x128xbf16> -> tensor<1x12x8448x128xbf16>
  return %o : tensor<1x12x8448x128xbf16>
}

// Where a function of each score makes softmax longer than products, three groups
// of warps hide more of it, in turn. Where a score region turns the position of a key into a
// number, scores may grow along the keys, and steps go from the last one to the first.
// What a tensor holds there, or that of a query, need not grow.
// SM90-LABEL: func @scores
// SM90: schedule = #attn.schedule<tile = 192x64, order = linear, warps = 12, stages = 4, maximum = stale, blocks = persistent, products = alternating, groups = in_turn>}
// SM90: schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = persistent>}
// SM90: schedule = #attn.schedule<{{.*}}, maximum = stale>}
func.func @scores(%r: tensor<16x32x1024x128xf16>, %t: tensor<1024xi32>) -> (tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>) {
  %s = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %y = math.tanh %x : f32
    attn.yield %y : f32
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  %a = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = arith.subi %j, %i : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %y = arith.addf %x, %2 : f32
    attn.yield %y : f32
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  %b = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = tensor.extract %t[%j] : tensor<1024xi32>
    %1 = arith.index_cast %i : index to i32
    %2 = arith.addi %0, %1 : i32
    %3 = arith.sitofp %2 : i32 to f32
    %y = arith.addf %x, %3 : f32
    attn.yield %y : f32
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  return %s, %a, %b : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>
}

// A tensor's number for the head is no number for each score. Its sign, and so how
// scores change along the keys, is not known, so that each step finds its maximum;
// but where a mask leaves no keys behind the query, near ones have larger scores.
// SM90-LABEL: func @slopes
// SM90: schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2, blocks = persistent>}
func.func @slopes(%r: tensor<16x32x1024x128xf16>, %t: tensor<32xf32>) -> tensor<16x32x1024x128xf16> {
  %a = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %t[%h] : tensor<32xf32>
    %0 = arith.subi %j, %i : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.mulf %2, %slope : f32
    %y = arith.addf %x, %3 : f32
    attn.yield %y : f32
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  return %a : tensor<16x32x1024x128xf16>
}

// Three groups of warps gain less than two where keys are visited from the last.
// SM90-LABEL: func @long_slopes
// SM90: schedule = #attn.schedule<tile = 128x128, {{.*}}, maximum = stale, keys = descending, blocks = dealt>}
func.func @long_slopes(%r: tensor<4x16x4096x128xbf16>, %t: tensor<16xf32>) -> tensor<4x16x4096x128xbf16> {
  %a = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %t[%h] : tensor<16xf32>
    %d = arith.subi %j, %i : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %bias = arith.mulf %slope, %f : f32
    %y = arith.addf %s, %bias : f32
    attn.yield %y : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16> -> tensor<4x16x4096x128xbf16>
  return %a : tensor<4x16x4096x128xbf16>
}

// SM90-LABEL: func @causal_slopes
// SM90: schedule = #attn.schedule<{{.*}}, maximum = stale, keys = descending, blocks = persistent>}
func.func @causal_slopes(%r: tensor<16x32x1024x128xf16>, %t: tensor<32xf32>) -> tensor<16x32x1024x128xf16> {
  %a = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %t[%h] : tensor<32xf32>
    %0 = arith.subi %j, %i : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.mulf %2, %slope : f32
    %y = arith.addf %x, %3 : f32
    attn.yield %y : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  return %a : tensor<16x32x1024x128xf16>
}

// SM90-LABEL: func @window_slopes
// SM90-NOT: maximum
// SM90: return
func.func @window_slopes(%r: tensor<16x32x1024x128xf16>, %t: tensor<32xf32>) -> tensor<16x32x1024x128xf16> {
  %a = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %t[%h] : tensor<32xf32>
    %0 = arith.subi %j, %i : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.mulf %2, %slope : f32
    %y = arith.addf %x, %3 : f32
    attn.yield %y : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %c100 = arith.constant 100 : index
    %c-100 = arith.constant -100 : index
    %before = arith.cmpi sle, %d, %c100 : index
    %behind = arith.cmpi sge, %d, %c-100 : index
    %keep = arith.andi %before, %behind : i1
    attn.yield %keep : i1
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  return %a : tensor<16x32x1024x128xf16>
}

// Distances behind a query that count against a key, from either side of a subtraction;
// scores that shrink along the keys, whose first step has the maximum; and distances to
// both sides, which favour keys in the middle.
// SM90-LABEL: func @distances
// SM90: schedule = #attn.schedule<{{.*}}, maximum = stale, keys = descending,
// SM90: schedule = #attn.schedule<{{.*}}, maximum = stale, blocks = persistent, groups = in_turn>}
// SM90: schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2, blocks = persistent>}
func.func @distances(%r: tensor<16x32x1024x128xf16>) -> (tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>) {
  %a = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %c = arith.constant 2.0 : f32
    %e = arith.negf %f : f32
    %s = arith.divf %e, %c : f32
    %minus = arith.negf %s : f32
    %y = arith.subf %x, %minus : f32
    attn.yield %y : f32
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  %s = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %m = arith.index_cast %h : index to i32
    %g = arith.sitofp %m : i32 to f32
    %slope = math.exp2 %g : f32
    %n = arith.index_cast %j : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = arith.mulf %slope, %f : f32
    %y = arith.subf %x, %t : f32
    attn.yield %y : f32
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  %m = attn.attention %r, %r, %r scale(0.125) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %n = arith.index_cast %d : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = math.absf %f : f32
    %y = arith.subf %x, %t : f32
    attn.yield %y : f32
  } : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16> -> tensor<16x32x1024x128xf16>
  return %a, %s, %m : tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>, tensor<16x32x1024x128xf16>
}

// The accumulator takes half of the registers.
// SM90-LABEL: func @d256
// SM90: tile = 128x64, order = linear, warps = 8, stages = 2, maximum = stale, keys = descending, blocks = shared, cluster = 2>
// SM80-LABEL: func @d256
// SM80: warps = {{4|8}}, stages = 2
func.func @d256(%q: tensor<2x16x?x256xf16>) -> tensor<2x16x?x256xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x?x256xf16>, tensor<2x16x?x256xf16>, tensor<2x16x?x256xf16> -> tensor<2x16x?x256xf16>
  return %o : tensor<2x16x?x256xf16>
}

// Tiles of 80 keys, which 16384 do not fill, have registers for masks: too many.
// SM90-LABEL: func @long_d256
// SM90: tile = 128x64, order = linear, warps = 8, stages = 2, maximum = stale, blocks = shared, cluster = 2>
// SM80-LABEL: func @long_d256
func.func @long_d256(%q: tensor<1x8x16384x256xbf16>) -> tensor<1x8x16384x256xbf16> {
  %o = attn.attention %q, %q, %q scale(0.0625) : tensor<1x8x16384x256xbf16>, tensor<1x8x16384x256xbf16>, tensor<1x8x16384x256xbf16> -> tensor<1x8x16384x256xbf16>
  return %o : tensor<1x8x16384x256xbf16>
}

// Under a mask clusters pay off where a tile has many keys.
// SM90-LABEL: func @long_causal_d256
// SM90: tile = 128x64, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent, cluster = 2>
// SM90: tile = 128x64, order = longest_first, warps = 8, stages = 2, maximum = stale, blocks = persistent>
// SM80-LABEL: func @long_causal_d256
func.func @long_causal_d256(%q: tensor<1x8x16384x256xbf16>, %k: tensor<2x8x8192x256xbf16>) -> (tensor<1x8x16384x256xbf16>, tensor<2x8x8192x256xbf16>) {
  %0 = attn.attention %q, %q, %q scale(0.0625) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<1x8x16384x256xbf16>, tensor<1x8x16384x256xbf16>, tensor<1x8x16384x256xbf16> -> tensor<1x8x16384x256xbf16>
  %1 = attn.attention %k, %k, %k scale(0.0625) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x8x8192x256xbf16>, tensor<2x8x8192x256xbf16>, tensor<2x8x8192x256xbf16> -> tensor<2x8x8192x256xbf16>
  return %0, %1 : tensor<1x8x16384x256xbf16>, tensor<2x8x8192x256xbf16>
}

// A schedule by hand, with which no kernel could be made.
// REMARK: a head dim is dynamic, 0 or above 256, so that its schedule is not used
// REMARK: a head dim is no multiple of 8 up to 256; attention is written out, kernel by kernel
// SM90-LABEL: func @unfit
// SM90-NOT: schedule
// SM90: return
func.func @unfit(%q: tensor<2x16x512x?xf16>) -> tensor<2x16x512x?xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2>}
    : tensor<2x16x512x?xf16>, tensor<2x16x512x?xf16>, tensor<2x16x512x?xf16> -> tensor<2x16x512x?xf16>
  return %o : tensor<2x16x512x?xf16>
}

// One query per head: the smallest tile.
// SM90-LABEL: func @decode
// SM90: tile = 64x{{[0-9]+}}, order = linear, warps = 4
func.func @decode(%q: tensor<2x16x1x128xf16>, %k: tensor<2x16x?x128xf16>) -> tensor<2x16x1x128xf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<2x16x1x128xf16>, tensor<2x16x?x128xf16>, tensor<2x16x?x128xf16> -> tensor<2x16x1x128xf16>
  return %o : tensor<2x16x1x128xf16>
}

// Wide elements take twice and four times the memory, and without tensor cores
// there is no hurry to copy them.
// SM90-LABEL: func @single
// SM90: warps = {{4|8}}, stages =
// SM80-LABEL: func @single
// SM80: warps = {{4|8}}, stages = 1
func.func @single(%q: tensor<2x16x?x128xf32>) -> tensor<2x16x?x128xf32> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x?x128xf32>, tensor<2x16x?x128xf32>, tensor<2x16x?x128xf32> -> tensor<2x16x?x128xf32>
  return %o : tensor<2x16x?x128xf32>
}

// SM90-LABEL: func @double
// SM90: warps = {{4|8}}, stages =
func.func @double(%q: tensor<2x16x?x64xf64>) -> tensor<2x16x?x64xf64> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64>, tensor<2x16x?x64xf64> -> tensor<2x16x?x64xf64>
  return %o : tensor<2x16x?x64xf64>
}

// What is left to be written out.
// SM90-LABEL: func @odd
// SM90-NOT: schedule
// REMARK: a head dim is no multiple of 8 up to 256; attention is written out, kernel by kernel
func.func @odd(%q: tensor<1x1x8x20xf16>) -> tensor<1x1x8x20xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<1x1x8x20xf16>, tensor<1x1x8x20xf16>, tensor<1x1x8x20xf16> -> tensor<1x1x8x20xf16>
  return %o : tensor<1x1x8x20xf16>
}

// SM90-LABEL: func @wide
// SM90-NOT: schedule
func.func @wide(%q: tensor<1x1x8x264xf16>) -> tensor<1x1x8x264xf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<1x1x8x264xf16>, tensor<1x1x8x264xf16>, tensor<1x1x8x264xf16> -> tensor<1x1x8x264xf16>
  return %o : tensor<1x1x8x264xf16>
}

// Operands that differ are multiplied in f32, to which they are converted.
// SM90-LABEL: func @mixed
// SM90: schedule = #attn.schedule<tile = 64x
func.func @mixed(%q: tensor<1x1x8x64xf32>, %k: tensor<1x1x8x64xf16>) -> tensor<1x1x8x64xf32> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x1x8x64xf32>, tensor<1x1x8x64xf16>, tensor<1x1x8x64xf16> -> tensor<1x1x8x64xf32>
  return %o : tensor<1x1x8x64xf32>
}

// Parts of a size that is asked for, in tiles that divide it, with the exact maximum,
// of one query and of many.
// SM90-LABEL: func @fixed_split(
// SM90: tile = 64x128, order = linear, warps = 4, stages = 2, split = fixed(2048)>
// SM90-NOT: stale
// SM90-NOT: persistent
// SM90: split = fixed(192)>
func.func @fixed_split(%q: tensor<1x8x4x128xbf16>, %k: tensor<1x8x8192x128xbf16>) -> (tensor<1x8x4x128xbf16>, tensor<1x8x8192x128xbf16>) {
  %o = attn.attention %q, %k, %k scale(0.125) {split_size = 2048 : i64} : tensor<1x8x4x128xbf16>, tensor<1x8x8192x128xbf16>, tensor<1x8x8192x128xbf16> -> tensor<1x8x4x128xbf16>
  %p = attn.attention %k, %k, %k scale(0.125) {split_size = 192 : i64} : tensor<1x8x8192x128xbf16>, tensor<1x8x8192x128xbf16>, tensor<1x8x8192x128xbf16> -> tensor<1x8x8192x128xbf16>
  return %o, %p : tensor<1x8x4x128xbf16>, tensor<1x8x8192x128xbf16>
}

// One query of heads that leave most multiprocessors idle: keys are split into as
// many parts as there are blocks at once, or as many as there are tiles; not where
// heads fill the machine, where queries are many, and where keys are few.
// SM90-LABEL: func @decode_split(
// SM90: tile = 64x128, order = linear, warps = 4, stages = 2, split = 16>
// SM80-LABEL: func @decode_split(
// SM80: split = {{[1-9][0-9]+}}>
func.func @decode_split(%q: tensor<1x8x4x128xbf16>, %k: tensor<1x8x8192x128xbf16>) -> tensor<1x8x4x128xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x8x4x128xbf16>, tensor<1x8x8192x128xbf16>, tensor<1x8x8192x128xbf16> -> tensor<1x8x4x128xbf16>
  return %o : tensor<1x8x4x128xbf16>
}

// SM90-LABEL: func @decode_short
// SM90: split = {{[2-9]|[1-9][0-9]+}}>
func.func @decode_short(%q: tensor<1x8x4x128xbf16>, %k: tensor<1x8x1024x128xbf16>) -> tensor<1x8x4x128xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x8x4x128xbf16>, tensor<1x8x1024x128xbf16>, tensor<1x8x1024x128xbf16> -> tensor<1x8x4x128xbf16>
  return %o : tensor<1x8x4x128xbf16>
}

// SM90-LABEL: func @decode_full
// SM90: tile = 64x128, order = linear, warps = 4, stages = 2, maximum = stale>
func.func @decode_full(%q: tensor<64x8x4x128xbf16>, %k: tensor<64x8x8192x128xbf16>) -> tensor<64x8x4x128xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<64x8x4x128xbf16>, tensor<64x8x8192x128xbf16>, tensor<64x8x8192x128xbf16> -> tensor<64x8x4x128xbf16>
  return %o : tensor<64x8x4x128xbf16>
}

// SM90-LABEL: func @prefill
// SM90-NOT: split
// SM90-LABEL: func @decode_few
// SM90-NOT: split
// SM90: return
func.func @prefill(%q: tensor<1x2x1024x128xbf16>) -> tensor<1x2x1024x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125) : tensor<1x2x1024x128xbf16>, tensor<1x2x1024x128xbf16>, tensor<1x2x1024x128xbf16> -> tensor<1x2x1024x128xbf16>
  return %o : tensor<1x2x1024x128xbf16>
}

func.func @decode_few(%q: tensor<1x8x4x128xbf16>, %k: tensor<1x8x128x128xbf16>) -> tensor<1x8x4x128xbf16> {
  %o = attn.attention %q, %k, %k scale(0.125) : tensor<1x8x4x128xbf16>, tensor<1x8x128x128xbf16>, tensor<1x8x128x128xbf16> -> tensor<1x8x4x128xbf16>
  return %o : tensor<1x8x4x128xbf16>
}

// A bias in 16 bits comes as tiles, in two slots at least, and leaves registers
// for 64 keys; without TMA its elements are gathered.
// SM90-LABEL: func @bias(
// SM90: tile = 192x64, {{.*}}captures = tiled>
// SM80-LABEL: func @bias(
// SM80-NOT: tiled
func.func @bias(%q: tensor<2x16x4096x128xbf16>, %bias: tensor<16x4096x4096xbf16>) -> tensor<2x16x4096x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %bias[%h, %i, %j] : tensor<16x4096x4096xbf16>
      %y = arith.extf %x : bf16 to f32
      %z = arith.addf %s, %y : f32
      attn.yield %z : f32
    } : tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16> -> tensor<2x16x4096x128xbf16>
  return %o : tensor<2x16x4096x128xbf16>
}

// One in f32 as well. It leaves memory for the results of persistent blocks only
// where these have two groups of warps.
// SM90-LABEL: func @wide_bias(
// SM90: tile = 128x80, {{.*}}stages = 2, maximum = stale, blocks = persistent, groups = in_turn, captures = tiled>
// SM80-LABEL: func @wide_bias(
// SM80-NOT: tiled
func.func @wide_bias(%q: tensor<2x16x4096x128xbf16>, %bias: tensor<16x4096x4096xf32>) -> tensor<2x16x4096x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %bias[%h, %i, %j] : tensor<16x4096x4096xf32>
      %z = arith.addf %s, %x : f32
      attn.yield %z : f32
    } : tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16> -> tensor<2x16x4096x128xbf16>
  return %o : tensor<2x16x4096x128xbf16>
}

// Booleans that a mask reads come as tiles, too, which take little memory.
// SM90-LABEL: func @bool_mask(
// SM90: tile = 128x128, {{.*}}maximum = stale, blocks = dealt, groups = in_turn, captures = tiled>
// SM80-LABEL: func @bool_mask(
// SM80-NOT: tiled
func.func @bool_mask(%q: tensor<2x16x4096x128xbf16>, %mask: tensor<2x1x4096x4096xi1>) -> tensor<2x16x4096x128xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %c0 = arith.constant 0 : index
      %x = tensor.extract %mask[%b, %c0, %i, %j] : tensor<2x1x4096x4096xi1>
      attn.yield %x : i1
    } : tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16> -> tensor<2x16x4096x128xbf16>
  return %o : tensor<2x16x4096x128xbf16>
}

// Beside a bias in f32, for which tiles of 48 keys would do, those of 32, of which
// rows of bytes have a swizzle.
// SM90-LABEL: func @bias_and_mask(
// SM90: tile = 128x32, {{.*}}captures = tiled>
func.func @bias_and_mask(%q: tensor<2x16x4096x256xbf16>, %bias: tensor<16x4096x4096xf32>, %mask: tensor<4096x4096xi8>) -> tensor<2x16x4096x256xbf16> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %bias[%h, %i, %j] : tensor<16x4096x4096xf32>
      %m = tensor.extract %mask[%i, %j] : tensor<4096x4096xi8>
      %zero = arith.constant 0 : i8
      %low = arith.constant -1.0e4 : f32
      %is = arith.cmpi ne, %m, %zero : i8
      %y = arith.addf %s, %x : f32
      %z = arith.select %is, %y, %low : f32
      attn.yield %z : f32
    } : tensor<2x16x4096x256xbf16>, tensor<2x16x4096x256xbf16>, tensor<2x16x4096x256xbf16> -> tensor<2x16x4096x256xbf16>
  return %o : tensor<2x16x4096x256xbf16>
}

// A table of distances takes little memory and no time that another schedule than
// that of plain attention would save: so do numbers of keys and of queries. Twice
// the key indexes no row.
// SM90-LABEL: func @lines(
// SM90: tile = 192x64, order = linear, warps = 12, stages = 4, maximum = stale, blocks = shared, captures = tiled>
// SM90-NOT: tiled
// SM80-LABEL: func @lines(
// SM80-NOT: tiled
func.func @lines(%q: tensor<2x16x8192x128xbf16>, %table: tensor<16x16383xf32>, %keys: tensor<2x8192xbf16>, %queries: tensor<16x8192xf32>) -> (tensor<2x16x8192x128xbf16>, tensor<2x16x8192x128xbf16>) {
  %0 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %c8191 = arith.constant 8191 : index
      %d = arith.subi %i, %j : index
      %n = arith.addi %d, %c8191 : index
      %x = tensor.extract %table[%h, %n] : tensor<16x16383xf32>
      %k = tensor.extract %keys[%b, %j] : tensor<2x8192xbf16>
      %l = arith.extf %k : bf16 to f32
      %u = tensor.extract %queries[%h, %i] : tensor<16x8192xf32>
      %y = arith.addf %s, %x : f32
      %z = arith.addf %y, %l : f32
      %w = arith.mulf %z, %u : f32
      attn.yield %w : f32
    } : tensor<2x16x8192x128xbf16>, tensor<2x16x8192x128xbf16>, tensor<2x16x8192x128xbf16> -> tensor<2x16x8192x128xbf16>
  %1 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %n = arith.addi %j, %j : index
      %x = tensor.extract %table[%h, %n] : tensor<16x16383xf32>
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } : tensor<2x16x8192x128xbf16>, tensor<2x16x8192x128xbf16>, tensor<2x16x8192x128xbf16> -> tensor<2x16x8192x128xbf16>
  return %0, %1 : tensor<2x16x8192x128xbf16>, tensor<2x16x8192x128xbf16>
}

// Where products by FMA hide reads of single elements, and tiles of these would
// leave room for few keys, they are gathered.
// SM90-LABEL: func @crowded(
// SM90-NOT: tiled
// SM90: return
func.func @crowded(%q: tensor<2x16x4096x240xf32>, %a: tensor<16x4096x4096xf32>, %c: tensor<16x4096x4096xf32>, %d: tensor<16x4096x4096xf32>) -> tensor<2x16x4096x240xf32> {
  %o = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %s0 = tensor.extract %a[%h, %i, %j] : tensor<16x4096x4096xf32>
      %s1 = tensor.extract %c[%h, %i, %j] : tensor<16x4096x4096xf32>
      %s2 = tensor.extract %d[%h, %i, %j] : tensor<16x4096x4096xf32>
      %t0 = arith.addf %s, %s0 : f32
      %t1 = arith.addf %t0, %s1 : f32
      %t2 = arith.addf %t1, %s2 : f32
      attn.yield %t2 : f32
    } : tensor<2x16x4096x240xf32>, tensor<2x16x4096x240xf32>, tensor<2x16x4096x240xf32> -> tensor<2x16x4096x240xf32>
  return %o : tensor<2x16x4096x240xf32>
}

// Elements of 64 bits, keys before queries, positions that are computed, rows
// that are no whole units of 16 bytes: gathered.
// SM90-LABEL: func @gathered(
// SM90-NOT: tiled
// SM90: return
func.func @gathered(%q: tensor<2x16x4092x128xbf16>, %wide: tensor<16x4092x4096xf64>, %turned: tensor<4092x4096xbf16>, %short: tensor<4092x4092xbf16>) -> (tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>) {
  %0 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %wide[%h, %i, %j] : tensor<16x4092x4096xf64>
      %y = arith.truncf %x : f64 to f32
      %z = arith.addf %s, %y : f32
      attn.yield %z : f32
    } : tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16> -> tensor<2x16x4092x128xbf16>
  %1 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %turned[%j, %i] : tensor<4092x4096xbf16>
      %y = arith.extf %x : bf16 to f32
      %z = arith.addf %s, %y : f32
      attn.yield %z : f32
    } : tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16> -> tensor<2x16x4092x128xbf16>
  %2 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %c1 = arith.constant 1 : index
      %next = arith.addi %j, %c1 : index
      %x = tensor.extract %turned[%i, %next] : tensor<4092x4096xbf16>
      %y = arith.extf %x : bf16 to f32
      %z = arith.addf %s, %y : f32
      attn.yield %z : f32
    } : tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16> -> tensor<2x16x4092x128xbf16>
  %3 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %short[%i, %j] : tensor<4092x4092xbf16>
      %y = arith.extf %x : bf16 to f32
      %z = arith.addf %s, %y : f32
      attn.yield %z : f32
    } : tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16> -> tensor<2x16x4092x128xbf16>
  return %0, %1, %2, %3 : tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>, tensor<2x16x4092x128xbf16>
}

// Frontends give floats without a gradient as integers of their bits.
// SM90-LABEL: func @bits(
// SM90: captures = tiled>
// SM90: captures = tiled>
func.func @bits(%q: tensor<2x16x4096x128xbf16>, %wide: tensor<16x4096x4096xi32>, %narrow: tensor<16x4096x4096xi16>) -> (tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>) {
  %0 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %wide[%h, %i, %j] : tensor<16x4096x4096xi32>
      %y = arith.bitcast %x : i32 to f32
      %z = arith.addf %s, %y : f32
      attn.yield %z : f32
    } : tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16> -> tensor<2x16x4096x128xbf16>
  %1 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %narrow[%h, %i, %j] : tensor<16x4096x4096xi16>
      %y = arith.bitcast %x : i16 to bf16
      %e = arith.extf %y : bf16 to f32
      %z = arith.addf %s, %e : f32
      attn.yield %z : f32
    } : tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16> -> tensor<2x16x4096x128xbf16>
  return %0, %1 : tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>
}

// Booleans along keys only, rows of booleans that are no whole units, integers of
// 64 bits: gathered.
// SM90-LABEL: func @gathered_masks(
// SM90-NOT: tiled
// SM90: return
func.func @gathered_masks(%q: tensor<2x16x4104x128xbf16>, %padding: tensor<2x4112xi1>, %short: tensor<4104x4104xi1>, %ids: tensor<4104x4112xi64>) -> (tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16>) {
  %0 = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %padding[%b, %j] : tensor<2x4112xi1>
      attn.yield %x : i1
    } : tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16> -> tensor<2x16x4104x128xbf16>
  %1 = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %short[%i, %j] : tensor<4104x4104xi1>
      attn.yield %x : i1
    } : tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16> -> tensor<2x16x4104x128xbf16>
  %2 = attn.attention %q, %q, %q scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %ids[%i, %j] : tensor<4104x4112xi64>
      %zero = arith.constant 0 : i64
      %is = arith.cmpi ne, %x, %zero : i64
      attn.yield %is : i1
    } : tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16> -> tensor<2x16x4104x128xbf16>
  return %0, %1, %2 : tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16>, tensor<2x16x4104x128xbf16>
}

// Scores that add the distance itself have maxima that exponents do not subtract:
// exact ones; not a quarter of it, nor where the query's own key comes first.
// SM90-LABEL: func @steep(
// SM90: schedule = #attn.schedule<tile = 128x128, order = linear, warps = 8, stages = 2, blocks = {{[a-z]*}}>
// SM90: schedule = #attn.schedule<{{.*}}maximum = stale, blocks
// SM90: schedule = #attn.schedule<{{.*}}maximum = stale, keys = descending
func.func @steep(%q: tensor<4x16x4096x128xbf16>) -> (tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>) {
  %0 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %i, %j : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } : tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16> -> tensor<4x16x4096x128xbf16>
  %1 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %quarter = arith.constant 0.25 : f32
      %d = arith.subi %i, %j : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %z = arith.mulf %x, %quarter : f32
      %y = arith.addf %s, %z : f32
      attn.yield %y : f32
    } : tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16> -> tensor<4x16x4096x128xbf16>
  %2 = attn.attention %q, %q, %q scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %j, %i : index
      %n = arith.index_cast %d : index to i32
      %x = arith.sitofp %n : i32 to f32
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    } mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %keep = arith.cmpi sge, %i, %j : index
      attn.yield %keep : i1
    } : tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16> -> tensor<4x16x4096x128xbf16>
  return %0, %1, %2 : tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>, tensor<4x16x4096x128xbf16>
}
