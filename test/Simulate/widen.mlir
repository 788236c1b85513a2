// Keys and values of 8 bits, widened by a role of their own, or by a kernel in front:
// in pages, by rows that lie apart, and for many queries. What lies
// behind a sequence's length is NaN, and does not matter.
//
// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %python %S/Inputs/pages.py write %t
//
// DEFINE: %{target} = sm_90a
// DEFINE: %{page} = 16
// DEFINE: %{entry} = pages%{page}
// DEFINE: %{q} = q
// DEFINE: %{run} = fovea-run %s --target=%{target} --simulate --entry=%{entry} --input=%t/float16-%{q}.npy
// DEFINE: %{check} = \
// DEFINE:   %{run} --input=%t/int8-%{page}-clean-k.npy --input=%t/int8-%{page}-clean-v.npy --input=%t/%{page}-clean-table.npy --input=%t/lengths.npy --output=%t/clean.npy --seeds=2 --check | FileCheck %s && \
// DEFINE:   %{run} --input=%t/int8-%{page}-nan-k.npy --input=%t/int8-%{page}-nan-v.npy --input=%t/%{page}-nan-table.npy --input=%t/lengths.npy --output=%t/nan.npy && \
// DEFINE:   %python %S/Inputs/pages.py compare %t/clean.npy %t/nan.npy
//
// RUN: %{check}
// REDEFINE: %{page} = 1
// RUN: %{check}
// REDEFINE: %{page} = 128
// RUN: %{check}
// REDEFINE: %{entry} = prefill
// REDEFINE: %{q} = many
// RUN: %{check}
//
// Another kernel widens where there is no role for it, all of the table's pages.
// REDEFINE: %{target} = sm_80
// RUN: %{run} --input=%t/int8-128-clean-k.npy --input=%t/int8-128-clean-v.npy --input=%t/128-clean-table.npy --input=%t/lengths.npy --check | FileCheck %s
//
// RUN: fovea-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=TILE
// Few queries: the warps that compute widen what they multiply.
// TILE-LABEL: func.func @pages16(
// TILE-NOT:   linalg.generic {{.*}} outs(%{{.*}}x64xf16
// TILE-NOT:   role "widen"
// TILE:       tile.role "load" warps 4
// TILE:       tile.load_async {{.*}} runs 16 {
// TILE:       tile.role "compute" warps 4 {
// TILE:       %[[K:.*]] = tile.wait {{.*}}xi8
// TILE:       tile.mma mma_sync %{{.*}}, %[[K]] from f8E4M3FN transpose_b rows 3 :
// TILE:       %[[V:.*]] = tile.wait {{.*}}xi8
// TILE:       tile.mma mma_sync %{{.*}}, %[[V]] from f8E4M3FN into
// TILE-LABEL: func.func @pages1(
// TILE-COUNT-2: runs 1 {
// TILE-LABEL: func.func @pages128(
// TILE-COUNT-2: runs 128 {
// Many: a role does.
// TILE-LABEL: func.func @prefill(
// TILE:       tile.role "load" warps 4 registers
// TILE:       tile.role "widen" warps 4 registers
// TILE:       %[[BYTES:.*]] = tile.wait
// TILE:       %[[SLOT:.*]] = tile.acquire
// TILE:       tile.widen_into %[[BYTES]] from f8E4M3FN warps 4 into %[[SLOT]] signals
// TILE:       tile.release
// TILE:       tile.role "compute" warps 4 registers
// TILE-NOT:   tile.widen
//
// CHECK: check: result 0: max error
// CHECK-NOT: FAILED

#rows = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}

func.func private @gather1(%cache: tensor<?x1x1x64xi8>, %table: tensor<?x?xi32>) -> tensor<?x1x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = arith.constant 1 : index
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
    %bits = tensor.extract %cache[%i, %slot, %h, %d] : tensor<?x1x1x64xi8>
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  return %k : tensor<?x1x?x64xf16>
}

func.func private @gather16(%cache: tensor<?x16x1x64xi8>, %table: tensor<?x?xi32>) -> tensor<?x1x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = arith.constant 16 : index
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
    %bits = tensor.extract %cache[%i, %slot, %h, %d] : tensor<?x16x1x64xi8>
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  return %k : tensor<?x1x?x64xf16>
}

func.func private @gather128(%cache: tensor<?x128x1x64xi8>, %table: tensor<?x?xi32>) -> tensor<?x1x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = arith.constant 128 : index
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
    %bits = tensor.extract %cache[%i, %slot, %h, %d] : tensor<?x128x1x64xi8>
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<?x1x?x64xf16>
  return %k : tensor<?x1x?x64xf16>
}

func.func @pages16(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x16x1x64xi8>, %vc: tensor<?x16x1x64xi8>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %k = call @gather16(%kc, %table) : (tensor<?x16x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %v = call @gather16(%vc, %table) : (tensor<?x16x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @pages1(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x1x1x64xi8>, %vc: tensor<?x1x1x64xi8>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %k = call @gather1(%kc, %table) : (tensor<?x1x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %v = call @gather1(%vc, %table) : (tensor<?x1x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @pages128(%q: tensor<?x1x3x64xf16>, %kc: tensor<?x128x1x64xi8>, %vc: tensor<?x128x1x64xi8>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x3x64xf16> {
  %k = call @gather128(%kc, %table) : (tensor<?x128x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %v = call @gather128(%vc, %table) : (tensor<?x128x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    attn.yield %keep : i1
  } : tensor<?x1x3x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x3x64xf16>
  return %o : tensor<?x1x3x64xf16>
}

func.func @prefill(%q: tensor<?x1x70x64xf16>, %kc: tensor<?x128x1x64xi8>, %vc: tensor<?x128x1x64xi8>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x1x70x64xf16> {
  %c70 = arith.constant 70 : index
  %k = call @gather128(%kc, %table) : (tensor<?x128x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %v = call @gather128(%vc, %table) : (tensor<?x128x1x64xi8>, tensor<?x?xi32>) -> tensor<?x1x?x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %l = tensor.extract %lengths[%b] : tensor<?xi32>
    %n = arith.index_cast %l : i32 to index
    %keep = arith.cmpi slt, %j, %n : index
    %after = arith.subi %n, %c70 : index
    %last = arith.addi %i, %after : index
    %sees = arith.cmpi sle, %j, %last : index
    %both = arith.andi %keep, %sees : i1
    attn.yield %both : i1
  } : tensor<?x1x70x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x1x70x64xf16>
  return %o : tensor<?x1x70x64xf16>
}
