// RUN: fovea-opt %s --verify-roundtrip | FileCheck %s

// Attention by roles, rings, TMA and WGMMA, as the tile passes write it for
// sm_90a: 128 queries a block, 128 keys a step, head dimension 128, bf16, the
// usual scale. @synchronous has one product after another. @overlapped issues
// the scores' product of a step, then the values' of the step before, and
// computes the softmax while that runs. Both need at least one key.

#acc = #tile.layout<128x128, registers = [2:1d1, 2:8d0, 16:8d1], threads = [4:2d1, 8:1d0, 8:16d0]>
#row = #tile.layout<128, registers = [2:8d0], threads = [4:r, 8:1d0, 8:16d0]>
!tile = !tile.shared<128x128xbf16, swizzle = 128>
!one = !tile.ring<1 x !tile>
!ring = !tile.ring<2 x !tile>
!acc = !tile.fragment<128x128xf32, #acc>
!narrow = !tile.fragment<128x128xbf16, #acc>
!row = !tile.fragment<128xf32, #row>
!token = !tile.token<!acc>
!tensor = tensor<?x?x?x128xbf16>
!in = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1], offset: ?>>

// CHECK: @synchronous(

// CHECK: tile.role "load"

// CHECK: tile.role "compute"

func.func @synchronous(%queries: !tensor, %keys: !tensor, %values: !tensor) -> !tensor {
  %scale = arith.constant 0.127517432 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c127 = arith.constant 127 : index
  %c128 = arith.constant 128 : index
  %batch = tensor.dim %queries, %c0 : !tensor
  %heads = tensor.dim %queries, %c1 : !tensor
  %rows = tensor.dim %queries, %c2 : !tensor
  %length = tensor.dim %keys, %c2 : !tensor
  %blocks = arith.ceildivui %rows, %c128 : index
  %init = tensor.empty(%batch, %heads, %rows) : !tensor
  %out = tile.launch kernel "synchronous" grid(%blocks, %heads, %batch) warps 8 ins(%queries, %keys, %values : !tensor, !tensor, !tensor) outs(%init : !tensor) {
  ^bb0(%r: index, %h: index, %b: index, %Q: !in, %K: !in, %V: !in, %O: !in):
    %query = arith.muli %r, %c128 : index
    %padded = arith.addi %length, %c127 : index
    %steps = arith.divui %padded, %c128 : index
    %qs = tile.ring : !one
    %ks = tile.ring : !ring
    %vs = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %qSlot = tile.acquire %qs[%c0] : !one
        tile.load_async %Q[%b, %h, %query, %c0] dims [2, 3] into %qSlot signals %qs[%c0] : !in, !one
        scf.for %n = %c0 to %steps step %c1 {
          %key = arith.muli %n, %c128 : index
          %kSlot = tile.acquire %ks[%n] : !ring
          tile.load_async %K[%b, %h, %key, %c0] dims [2, 3] into %kSlot signals %ks[%n] : !in, !ring
          %vSlot = tile.acquire %vs[%n] : !ring
          tile.load_async %V[%b, %h, %key, %c0] dims [2, 3] into %vSlot signals %vs[%n] : !in, !ring
        }
      }
      tile.role "compute" warps 8 registers 240 {
        %zero = arith.constant 0.0 : f32
        %ninf = arith.constant 0xFF800000 : f32
        %acc0 = tile.fill %zero : !acc
        %max0 = tile.fill %ninf : !row
        %sum0 = tile.fill %zero : !row
        %q = tile.wait %qs[%c0] : !one
        %end:3 = scf.for %n = %c0 to %steps step %c1 iter_args(%acc = %acc0, %max = %max0, %sum = %sum0) -> (!acc, !row, !row) {
          %key = arith.muli %n, %c128 : index
          %k = tile.wait %ks[%n] : !ring
          %s = tile.mma wgmma %q, %k transpose_b : !tile, !tile -> !acc
          tile.release %ks[%n] : !ring
          %scaled = tile.map ins(%s : !acc) {
          ^bb0(%x: f32, %i: index, %j: index):
            %y = arith.mulf %x, %scale : f32
            tile.yield %y : f32
          } -> !acc
          %last = arith.addi %key, %c128 : index
          %partial = arith.cmpi ugt, %last, %length : index
          %visible = scf.if %partial -> (!acc) {
            %masked = tile.map ins(%scaled : !acc) {
            ^bb0(%x: f32, %i: index, %j: index):
              %column = arith.addi %key, %j : index
              %keep = arith.cmpi ult, %column, %length : index
              %y = arith.select %keep, %x, %ninf : f32
              tile.yield %y : f32
            } -> !acc
            scf.yield %masked : !acc
          } else {
            scf.yield %scaled : !acc
          }
          %newMax = tile.reduce max %visible, %max dim 1 : !acc -> !row
          %alpha = tile.map ins(%max, %newMax : !row, !row) {
          ^bb0(%x: f32, %y: f32, %i: index):
            %d = arith.subf %x, %y : f32
            %e = math.exp2 %d : f32
            tile.yield %e : f32
          } -> !row
          %p = tile.map ins(%visible : !acc) rows(%newMax : !row) {
          ^bb0(%x: f32, %y: f32, %i: index, %j: index):
            %d = arith.subf %x, %y : f32
            %e = math.exp2 %d : f32
            tile.yield %e : f32
          } -> !acc
          %lessSum = tile.map ins(%sum, %alpha : !row, !row) {
          ^bb0(%x: f32, %y: f32, %i: index):
            %z = arith.mulf %x, %y : f32
            tile.yield %z : f32
          } -> !row
          %newSum = tile.reduce add %p, %lessSum dim 1 : !acc -> !row
          %lessAcc = tile.map ins(%acc : !acc) rows(%alpha : !row) {
          ^bb0(%x: f32, %y: f32, %i: index, %j: index):
            %z = arith.mulf %x, %y : f32
            tile.yield %z : f32
          } -> !acc
          %p16 = tile.map ins(%p : !acc) {
          ^bb0(%x: f32, %i: index, %j: index):
            %y = arith.truncf %x : f32 to bf16
            tile.yield %y : bf16
          } -> !narrow
          %v = tile.wait %vs[%n] : !ring
          %newAcc = tile.mma wgmma %p16, %v into %lessAcc : !narrow, !tile, !acc -> !acc
          tile.release %vs[%n] : !ring
          scf.yield %newAcc, %newMax, %newSum : !acc, !row, !row
        }
        tile.release %qs[%c0] : !one
        %o = tile.map ins(%end#0 : !acc) rows(%end#2 : !row) {
        ^bb0(%x: f32, %y: f32, %i: index, %j: index):
          %z = arith.divf %x, %y : f32
          %narrow = arith.truncf %z : f32 to bf16
          tile.yield %narrow : bf16
        } -> !narrow
        tile.store %o, %O[%b, %h, %query, %c0] dims [2, 3] : !narrow, !in
      }
    }
  } -> !tensor
  return %out : !tensor
}

// CHECK: @overlapped(

// CHECK: tile.role "load"

// CHECK: tile.role "compute"

func.func @overlapped(%queries: !tensor, %keys: !tensor, %values: !tensor) -> !tensor {
  %scale = arith.constant 0.127517432 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c127 = arith.constant 127 : index
  %c128 = arith.constant 128 : index
  %batch = tensor.dim %queries, %c0 : !tensor
  %heads = tensor.dim %queries, %c1 : !tensor
  %rows = tensor.dim %queries, %c2 : !tensor
  %length = tensor.dim %keys, %c2 : !tensor
  %blocks = arith.ceildivui %rows, %c128 : index
  %init = tensor.empty(%batch, %heads, %rows) : !tensor
  %out = tile.launch kernel "overlapped" grid(%blocks, %heads, %batch) warps 8 ins(%queries, %keys, %values : !tensor, !tensor, !tensor) outs(%init : !tensor) {
  ^bb0(%r: index, %h: index, %b: index, %Q: !in, %K: !in, %V: !in, %O: !in):
    %query = arith.muli %r, %c128 : index
    %padded = arith.addi %length, %c127 : index
    %steps = arith.divui %padded, %c128 : index
    %qs = tile.ring : !one
    %ks = tile.ring : !ring
    %vs = tile.ring : !ring
    tile.roles {
      tile.role "load" warps 4 registers 24 single {
        %qSlot = tile.acquire %qs[%c0] : !one
        tile.load_async %Q[%b, %h, %query, %c0] dims [2, 3] into %qSlot signals %qs[%c0] : !in, !one
        scf.for %n = %c0 to %steps step %c1 {
          %key = arith.muli %n, %c128 : index
          %kSlot = tile.acquire %ks[%n] : !ring
          tile.load_async %K[%b, %h, %key, %c0] dims [2, 3] into %kSlot signals %ks[%n] : !in, !ring
          %vSlot = tile.acquire %vs[%n] : !ring
          tile.load_async %V[%b, %h, %key, %c0] dims [2, 3] into %vSlot signals %vs[%n] : !in, !ring
        }
      }
      tile.role "compute" warps 8 registers 240 {
        %zero = arith.constant 0.0 : f32
        %ninf = arith.constant 0xFF800000 : f32
        %acc0 = tile.fill %zero : !acc
        %max0 = tile.fill %ninf : !row
        %sum0 = tile.fill %zero : !row
        %q = tile.wait %qs[%c0] : !one

        // The first block alone.
        %k0 = tile.wait %ks[%c0] : !ring
        %t0 = tile.mma_async wgmma %q, %k0 transpose_b : !tile, !tile -> !token
        %s0 = tile.wait_mma %t0 : !token
        tile.release %ks[%c0] : !ring
        %first_scaled = tile.map ins(%s0 : !acc) {
        ^bb0(%x: f32, %i: index, %j: index):
          %y = arith.mulf %x, %scale : f32
          tile.yield %y : f32
        } -> !acc
        %first_last = arith.addi %c0, %c128 : index
        %first_partial = arith.cmpi ugt, %first_last, %length : index
        %first_visible = scf.if %first_partial -> (!acc) {
          %masked = tile.map ins(%first_scaled : !acc) {
          ^bb0(%x: f32, %i: index, %j: index):
            %column = arith.addi %c0, %j : index
            %keep = arith.cmpi ult, %column, %length : index
            %y = arith.select %keep, %x, %ninf : f32
            tile.yield %y : f32
          } -> !acc
          scf.yield %masked : !acc
        } else {
          scf.yield %first_scaled : !acc
        }
        %first_max = tile.reduce max %first_visible, %max0 dim 1 : !acc -> !row
        %first_p = tile.map ins(%first_visible : !acc) rows(%first_max : !row) {
        ^bb0(%x: f32, %y: f32, %i: index, %j: index):
          %d = arith.subf %x, %y : f32
          %e = math.exp2 %d : f32
          tile.yield %e : f32
        } -> !acc
        %first_sum = tile.reduce add %first_p, %sum0 dim 1 : !acc -> !row
        %first_p16 = tile.map ins(%first_p : !acc) {
        ^bb0(%x: f32, %i: index, %j: index):
          %y = arith.truncf %x : f32 to bf16
          tile.yield %y : bf16
        } -> !narrow

        %end:4 = scf.for %n = %c1 to %steps step %c1 iter_args(%acc = %acc0, %max = %first_max, %sum = %first_sum, %oldP = %first_p16) -> (!acc, !row, !row, !narrow) {
          %before = arith.subi %n, %c1 : index
          %key = arith.muli %n, %c128 : index
          %k = tile.wait %ks[%n] : !ring
          %t = tile.mma_async wgmma %q, %k transpose_b : !tile, !tile -> !token
          %v = tile.wait %vs[%before] : !ring
          %u = tile.mma_async wgmma %oldP, %v into %acc : !narrow, !tile, !acc -> !token
          %s = tile.wait_mma %t pending 1 : !token
          tile.release %ks[%n] : !ring
          %new_scaled = tile.map ins(%s : !acc) {
          ^bb0(%x: f32, %i: index, %j: index):
            %y = arith.mulf %x, %scale : f32
            tile.yield %y : f32
          } -> !acc
          %new_last = arith.addi %key, %c128 : index
          %new_partial = arith.cmpi ugt, %new_last, %length : index
          %new_visible = scf.if %new_partial -> (!acc) {
            %masked = tile.map ins(%new_scaled : !acc) {
            ^bb0(%x: f32, %i: index, %j: index):
              %column = arith.addi %key, %j : index
              %keep = arith.cmpi ult, %column, %length : index
              %y = arith.select %keep, %x, %ninf : f32
              tile.yield %y : f32
            } -> !acc
            scf.yield %masked : !acc
          } else {
            scf.yield %new_scaled : !acc
          }
          %new_max = tile.reduce max %new_visible, %max dim 1 : !acc -> !row
          %new_p = tile.map ins(%new_visible : !acc) rows(%new_max : !row) {
          ^bb0(%x: f32, %y: f32, %i: index, %j: index):
            %d = arith.subf %x, %y : f32
            %e = math.exp2 %d : f32
            tile.yield %e : f32
          } -> !acc
          %new_alpha = tile.map ins(%max, %new_max : !row, !row) {
          ^bb0(%x: f32, %y: f32, %i: index):
            %d = arith.subf %x, %y : f32
            %e = math.exp2 %d : f32
            tile.yield %e : f32
          } -> !row
          %new_less = tile.map ins(%sum, %new_alpha : !row, !row) {
          ^bb0(%x: f32, %y: f32, %i: index):
            %z = arith.mulf %x, %y : f32
            tile.yield %z : f32
          } -> !row
          %new_sum = tile.reduce add %new_p, %new_less dim 1 : !acc -> !row
          %sumOfProducts = tile.wait_mma %u : !token
          tile.release %vs[%before] : !ring
          %lessAcc = tile.map ins(%sumOfProducts : !acc) rows(%new_alpha : !row) {
          ^bb0(%x: f32, %y: f32, %i: index, %j: index):
            %z = arith.mulf %x, %y : f32
            tile.yield %z : f32
          } -> !acc
          %p16 = tile.map ins(%new_p : !acc) {
          ^bb0(%x: f32, %i: index, %j: index):
            %y = arith.truncf %x : f32 to bf16
            tile.yield %y : bf16
          } -> !narrow
          scf.yield %lessAcc, %new_max, %new_sum, %p16 : !acc, !row, !row, !narrow
        }
        tile.release %qs[%c0] : !one

        // The last block's values.
        %final = arith.subi %steps, %c1 : index
        %vLast = tile.wait %vs[%final] : !ring
        %total = tile.mma wgmma %end#3, %vLast into %end#0 : !narrow, !tile, !acc -> !acc
        tile.release %vs[%final] : !ring
        %o = tile.map ins(%total : !acc) rows(%end#2 : !row) {
        ^bb0(%x: f32, %y: f32, %i: index, %j: index):
          %z = arith.divf %x, %y : f32
          %narrow = arith.truncf %z : f32 to bf16
          tile.yield %narrow : bf16
        } -> !narrow
        tile.store %o, %O[%b, %h, %query, %c0] dims [2, 3] : !narrow, !in
      }
    }
  } -> !tensor
  return %out : !tensor
}
