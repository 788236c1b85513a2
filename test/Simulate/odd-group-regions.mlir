// Regions are asked for the rows of a query that have no head, and so must not reach for a
// head that the graph does not have: a tensor is read at a head in a branch, and a divisor
// is zero for the head behind the last one. By code for short lengths, and of a known number.
// Nine heads, whose values have other features than keys, have nearly as many rows without
// a head.
//
// DEFINE: %{run} = fovea-run %s --check --target=sm_90a --simulate --random=1
// RUN: %{run} --typical-length=1024 --entry=branch --dims=q:1x7x20x64 --dims=k:1x1x70x64 | FileCheck %s
// RUN: %{run} --typical-length=1024 --entry=quotient --dims=q:1x7x20x64 --dims=k:1x1x70x64 | FileCheck %s
// RUN: %{run} --typical-length=1024 --entry=nine --dims=q:2x9x17x64 --dims=k:2x1x70x32 --dims=key:2x1x70x64 | FileCheck %s
// RUN: %{run} --entry=known | FileCheck %s
// RUN: fovea-compile %s --target=sm_90a --typical-length=1024 --emit=tile | FileCheck %s --check-prefix=TILE
// TILE-COUNT-2: tile.store_async {{.*}} inner 8 used 7
// TILE: tile.store_async {{.*}} inner 16 used 9
// TILE: tile.store_async {{.*}} inner 8 used 7
//
// CHECK: check: result 0: max error {{[0-9.e-]+}}, relative {{[0-9.e-]+}} (bound
// CHECK-NOT: FAILED

!q = tensor<?x7x?x64xbf16>
!k = tensor<?x1x?x64xbf16>
!known = tensor<1x7x40x64xbf16>
func.func @branch(%q: !q, %k: !k, %t: tensor<7xf32>) -> !q {
  %o = attn.attention %q, %k, %k scale(0.125)
    score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
      %c = arith.cmpi slt, %i, %j : index
      %v = scf.if %c -> (f32) {
        %x = tensor.extract %t[%h] : tensor<7xf32>
        scf.yield %x : f32
      } else {
        %z = arith.constant 0.0 : f32
        scf.yield %z : f32
      }
      %r = arith.addf %s, %v : f32
      attn.yield %r : f32
    } : !q, !k, !k -> !q
  return %o : !q
}
func.func @quotient(%q: !q, %k: !k) -> !q {
  %c7 = arith.constant 7 : index
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %c7, %h : index
      %w = arith.divsi %j, %d : index
      %r = arith.cmpi sle, %w, %i : index
      attn.yield %r : i1
    } : !q, !k, !k -> !q
  return %o : !q
}
func.func @nine(%q: tensor<?x9x?x64xbf16>, %key: !k, %k: tensor<?x1x?x32xbf16>) -> tensor<?x9x?x32xbf16> {
  %o = attn.attention %q, %key, %k scale(0.125)
    : tensor<?x9x?x64xbf16>, !k, tensor<?x1x?x32xbf16> -> tensor<?x9x?x32xbf16>
  return %o : tensor<?x9x?x32xbf16>
}
func.func @known(%q: !known, %k: tensor<1x1x40x64xbf16>) -> !known {
  %c7 = arith.constant 7 : index
  %o = attn.attention %q, %k, %k scale(0.125)
    mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %d = arith.subi %c7, %h : index
      %w = arith.divsi %j, %d : index
      %r = arith.cmpi sle, %w, %i : index
      attn.yield %r : i1
    } : !known, tensor<1x1x40x64xbf16>, tensor<1x1x40x64xbf16> -> !known
  return %o : !known
}
