// Keys and values whose rows a table of pages, or other numbers, place: no key,
// one, a tile of keys more or less, and all. What slots behind a sequence's keys
// hold, pages of no sequence, and numbers of pages behind its last one do not
// matter: results are, bit by bit, those of zeros there.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/pages.py write %t
//
// DEFINE: %{target} = sm_90a
// DEFINE: %{page} = 16
// DEFINE: %{entry} = page%{page}
// DEFINE: %{kind} = float16
// DEFINE: %{q} = q
// DEFINE: %{run} = fovea-run %s --target=%{target} --simulate --entry=%{entry} --input=%t/%{kind}-%{q}.npy
// DEFINE: %{pages} = \
// DEFINE:   %{run} --input=%t/%{kind}-%{page}-clean-k.npy --input=%t/%{kind}-%{page}-clean-v.npy --input=%t/%{page}-clean-table.npy --input=%t/lengths.npy --output=%t/clean.npy --check | FileCheck %s && \
// DEFINE:   %{run} --input=%t/%{kind}-%{page}-nan-k.npy --input=%t/%{kind}-%{page}-nan-v.npy --input=%t/%{page}-nan-table.npy --input=%t/lengths.npy --output=%t/nan.npy && \
// DEFINE:   %python %S/Inputs/pages.py compare %t/clean.npy %t/nan.npy
//
// RUN: %{pages}
// REDEFINE: %{page} = 1
// RUN: %{pages}
// REDEFINE: %{page} = 5
// RUN: %{pages}
// REDEFINE: %{page} = 8
// RUN: %{pages}
// REDEFINE: %{page} = 64
// RUN: %{pages}
// REDEFINE: %{page} = 128
// RUN: %{pages}
//
// Keys split among blocks, some of which have none.
// REDEFINE: %{page} = 128
// REDEFINE: %{entry} = split%{page}
// RUN: %{pages}
// REDEFINE: %{page} = 16
// REDEFINE: %{entry} = split%{page}
// RUN: %{pages}
//
// Pages that are gathered as a whole, reshaped and transposed.
// REDEFINE: %{entry} = whole_pages
// RUN: %{pages}
//
// Many queries, under a causal mask.
// REDEFINE: %{page} = 16
// REDEFINE: %{entry} = prefill%{page}
// REDEFINE: %{q} = many
// RUN: %{pages}
// REDEFINE: %{page} = 1
// REDEFINE: %{entry} = prefill%{page}
// REDEFINE: %{q} = many
// RUN: %{pages}
//
// cp.async by all threads.
// REDEFINE: %{target} = sm_80
// RUN: %{pages}
// REDEFINE: %{page} = 1
// REDEFINE: %{entry} = page%{page}
// REDEFINE: %{q} = q
// RUN: %{pages}
// REDEFINE: %{page} = 128
// REDEFINE: %{entry} = page%{page}
// REDEFINE: %{q} = q
// RUN: %{pages}
// REDEFINE: %{entry} = split%{page}
// RUN: %{pages}
//
// f32: threads copy, and wait for their copies.
// REDEFINE: %{kind} = float32
// REDEFINE: %{page} = 16
// REDEFINE: %{entry} = floats
// RUN: %{pages}
// REDEFINE: %{target} = sm_90a
// RUN: %{pages}
//
// Sequences that follow one another in one tensor: queries, keys and values.
// RUN: fovea-run %s --target=sm_90a --simulate --entry=ragged --input=%t/rows-q.npy --input=%t/rows-k.npy --input=%t/rows-v.npy --input=%t/starts.npy --check | FileCheck %s
// RUN: fovea-run %s --target=sm_80 --simulate --entry=ragged --input=%t/rows-q.npy --input=%t/rows-k.npy --input=%t/rows-v.npy --input=%t/starts.npy --check | FileCheck %s
//
// A number that is out of range is found where a key is present.
// RUN: not fovea-run %s --target=sm_90a --simulate --entry=page16 --input=%t/float16-q.npy --input=%t/float16-16-nan-k.npy --input=%t/float16-16-nan-v.npy --input=%t/16-nan-table.npy --input=%t/all.npy 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: 'tile.load_async' op places row {{[0-9]+}} of its tile at [{{[-0-9]+}}, {{[0-9]+}}, 0, 0] of a tensor of sizes [{{[0-9]+}}, 16, 1, 64]
//
// Which rows follow one another, and that the pages of a sequence are asked for once.
// RUN: fovea-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=TILE
// TILE-LABEL: func.func @page1(
// TILE-NOT:   linalg.generic {{.*}} outs(%{{.*}}x64xf16
// TILE:       tile.role "load" warps 4 {
// TILE:       dims [2, 3] rows({{.*}}) whole_runs runs 1 {
// TILE:       dims [2, 3] rows({{.*}}) runs 1 {
// TILE-LABEL: func.func @page5(
// TILE-COUNT-2: runs 1 {
// TILE-LABEL: func.func @page8(
// TILE-COUNT-2: runs 8 {
// TILE-LABEL: func.func @split128(
// TILE-COUNT-2: runs 64 {
// TILE-LABEL: func.func @split16(
// TILE:       tile.role "load" warps 4 {
// TILE:       tile.prefetch %{{.*}}[%{{.*}}] : memref<?x?xi32
// TILE-NOT:   tile.prefetch
// TILE-COUNT-2: runs 16 {
// TILE-LABEL: func.func @floats(
// TILE:       tile.prefetch %{{.*}} : memref<?x?xi32
// TILE-NOT:   tile.prefetch
// TILE-COUNT-2: tile.load %{{.*}} runs 16 {
// TILE-LABEL: func.func @prefill1(
// TILE-COUNT-2: runs 1 {
// TILE-LABEL: func.func @prefill16(
// TILE-COUNT-2: runs 16 {
// TILE-LABEL: func.func @whole_pages(
// TILE-COUNT-2: runs 16 {
// TILE-LABEL: func.func @ragged(
// TILE-NOT:   tile.prefetch
// TILE:         dims [0, 2] rows({{.*}}) whole_runs runs 64 {
// TILE-COUNT-2: dims [0, 2] rows({{.*}}) {{(whole_runs )?}}runs 80 {
//
// Gradients.
// RUN: fovea-run %s --target=sm_90a --simulate --entry=page5 --grad --input=%t/float16-q.npy --input=%t/float16-5-clean-k.npy --input=%t/float16-5-clean-v.npy --input=%t/5-clean-table.npy --input=%t/lengths.npy --input=%t/float16-q.npy --check | FileCheck %s
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

#rows = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
#pages = {indexing_maps = [affine_map<(b, n, s, h, d) -> (b, n)>, affine_map<(b, n, s, h, d) -> (b, n, s, h, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}

func.func @page1(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x1x1x64xf16>, %vc: tensor<?x1x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 1 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x1x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x1x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @page5(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x5x1x64xf16>, %vc: tensor<?x5x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 5 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x5x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x5x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @page8(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x8x1x64xf16>, %vc: tensor<?x8x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 8 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x8x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x8x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @page16(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x16x1x64xf16>, %vc: tensor<?x16x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 16 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @page64(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x64x1x64xf16>, %vc: tensor<?x64x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 64 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x64x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x64x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @page128(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x128x1x64xf16>, %vc: tensor<?x128x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 128 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x128x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x128x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @split128(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x128x1x64xf16>, %vc: tensor<?x128x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 128 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x128x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x128x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 20>} : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @split16(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x16x1x64xf16>, %vc: tensor<?x16x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 16 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } {schedule = #attn.schedule<tile = 64x64, order = linear, warps = 4, stages = 2, split = 20>} : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @floats(%q: tensor<?x1x3x64xf32>, %kc: tensor<?x16x1x64xf32>, %vc: tensor<?x16x1x64xf32>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 16 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x3x64xf32>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf32>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf32>) {
  ^bb0(%x: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x16x1x64xf32>
    linalg.yield %y : f32
  } -> tensor<?x1x?x64xf32>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf32>) {
  ^bb0(%x: f32):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x16x1x64xf32>
    linalg.yield %y : f32
  } -> tensor<?x1x?x64xf32>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf32>, tensor<?x1x?x64xf32>, tensor<?x1x?x64xf32> -> tensor<?x1x3x64xf32>
  return %o : tensor<?x1x3x64xf32>
}

func.func @prefill1(%q: tensor<?x1x?x64xf16>, %kc: tensor<?x1x1x64xf16>, %vc: tensor<?x1x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 1 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x?x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x1x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x1x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %isKey = arith.cmpi slt, %j, %n : index
    %before = arith.subi %n, %queries : index
    %last = arith.addi %i, %before : index
    %isSeen = arith.cmpi sle, %j, %last : index
    %keep = arith.andi %isKey, %isSeen : i1
    attn.yield %keep : i1
  } : tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x?x64xf16>
  return %o : tensor<?x1x?x64xf16>
}

func.func @prefill16(%q: tensor<?x1x?x64xf16>, %kc: tensor<?x16x1x64xf16>, %vc: tensor<?x16x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = arith.constant 16 : index
  %queries = tensor.dim %q, %c2 : tensor<?x1x?x64xf16>
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %size : index
  %e = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %slot, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x1x?x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %page = arith.divui %j, %size : index
    %slot = arith.remui %j, %size : index
    %p = tensor.extract %table[%b, %page] : tensor<?x?xi32>
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %slot, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %isKey = arith.cmpi slt, %j, %n : index
    %before = arith.subi %n, %queries : index
    %last = arith.addi %i, %before : index
    %isSeen = arith.cmpi sle, %j, %last : index
    %keep = arith.andi %isKey, %isSeen : i1
    attn.yield %keep : i1
  } : tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x?x64xf16>
  return %o : tensor<?x1x?x64xf16>
}

func.func @whole_pages(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x16x1x64xf16>, %vc: tensor<?x16x1x64xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %batches = tensor.dim %table, %c0 : tensor<?x?xi32>
  %pages = tensor.dim %table, %c1 : tensor<?x?xi32>
  %keys = arith.muli %pages, %c16 : index
  %e = tensor.empty(%batches, %pages) : tensor<?x?x16x1x64xf16>
  %et = tensor.empty(%batches, %keys) : tensor<?x1x?x64xf16>
  %kp = linalg.generic #pages ins(%table : tensor<?x?xi32>) outs(%e : tensor<?x?x16x1x64xf16>) {
  ^bb0(%p: i32, %x: f16):
    %s = linalg.index 2 : index
    %h = linalg.index 3 : index
    %d = linalg.index 4 : index
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %kc[%i, %s, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x?x16x1x64xf16>
  %kr = tensor.collapse_shape %kp [[0], [1, 2], [3], [4]] : tensor<?x?x16x1x64xf16> into tensor<?x?x1x64xf16>
  %k = linalg.transpose ins(%kr : tensor<?x?x1x64xf16>) outs(%et : tensor<?x1x?x64xf16>) permutation = [0, 2, 1, 3]
  %vp = linalg.generic #pages ins(%table : tensor<?x?xi32>) outs(%e : tensor<?x?x16x1x64xf16>) {
  ^bb0(%p: i32, %x: f16):
    %s = linalg.index 2 : index
    %h = linalg.index 3 : index
    %d = linalg.index 4 : index
    %i = arith.index_cast %p : i32 to index
    %y = tensor.extract %vc[%i, %s, %h, %d] : tensor<?x16x1x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x?x16x1x64xf16>
  %vr = tensor.collapse_shape %vp [[0], [1, 2], [3], [4]] : tensor<?x?x16x1x64xf16> into tensor<?x?x1x64xf16>
  %v = linalg.transpose ins(%vr : tensor<?x?x1x64xf16>) outs(%et : tensor<?x1x?x64xf16>) permutation = [0, 2, 1, 3]
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @ragged(%qr: tensor<?x2x64xf16>, %kr: tensor<?x2x64xf16>, %vr: tensor<?x2x64xf16>, %starts: tensor<?xi32>) -> tensor<?x2x140x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ends = tensor.dim %starts, %c0 : tensor<?xi32>
  %batches = arith.subi %ends, %c1 : index
  %e = tensor.empty(%batches) : tensor<?x2x140x64xf16>
  %q = linalg.generic #rows outs(%e : tensor<?x2x140x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %s = tensor.extract %starts[%b] : tensor<?xi32>
    %i = arith.index_cast %s : i32 to index
    %row = arith.addi %i, %j : index
    %y = tensor.extract %qr[%row, %h, %d] : tensor<?x2x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x2x140x64xf16>
  %k = linalg.generic #rows outs(%e : tensor<?x2x140x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %s = tensor.extract %starts[%b] : tensor<?xi32>
    %i = arith.index_cast %s : i32 to index
    %row = arith.addi %i, %j : index
    %y = tensor.extract %kr[%row, %h, %d] : tensor<?x2x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x2x140x64xf16>
  %v = linalg.generic #rows outs(%e : tensor<?x2x140x64xf16>) {
  ^bb0(%x: f16):
    %b = linalg.index 0 : index
    %h = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = linalg.index 3 : index
    %s = tensor.extract %starts[%b] : tensor<?xi32>
    %i = arith.index_cast %s : i32 to index
    %row = arith.addi %i, %j : index
    %y = tensor.extract %vr[%row, %h, %d] : tensor<?x2x64xf16>
    linalg.yield %y : f16
  } -> tensor<?x2x140x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %one = arith.constant 1 : index
    %next = arith.addi %b, %one : index
    %s = tensor.extract %starts[%b] : tensor<?xi32>
    %t = tensor.extract %starts[%next] : tensor<?xi32>
    %l = arith.subi %t, %s : i32
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x2x140x64xf16>, tensor<?x2x140x64xf16>, tensor<?x2x140x64xf16> -> tensor<?x2x140x64xf16>
  return %o : tensor<?x2x140x64xf16>
}
