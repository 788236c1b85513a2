// Tiles whose rows run along two dimensions (`inner`): each place has 4 rows, of the heads
// 1 to 4 of 6, and 18 places are a whole tile and one that ends after 2. By threads and by
// TMA, with and without descriptors, they are copied from where heads lie apart to where
// they lie side by side, by TMA the first 60 rows alone; and to a matrix that has the
// tile's rows as they are. Numbers differ everywhere, those that nothing writes are -1,
// and the results are differences from what they should be.
//
// RUN: fovea-run %s --target=sm_90a --simulate --seeds=4 | FileCheck %s --implicit-check-not=result
// CHECK: result 0: f32 72x64, {{.*}}min 0, max 0{{$}}
// CHECK: result 1: f32 18x6x64, {{.*}}min 0, max 0{{$}}
// CHECK: result 2: f32 72x64, {{.*}}min 0, max 0{{$}}
// CHECK: result 3: f32 18x6x64, {{.*}}min 0, max 0{{$}}
// CHECK: result 4: f32 18x6x64, {{.*}}min 0, max 0{{$}}
//
// Loads of other rows are not what is stored.
// RUN: sed '/tile.load/s/inner 4/inner 2/' %s > %t.mlir
// RUN: fovea-run %t.mlir --target=sm_90a --simulate | FileCheck %s --check-prefix=OTHER
// OTHER: result 0:
// OTHER-NOT: min 0, max 0
//
// Stores of other rows run into those of the next block.
// RUN: sed '/tile.store/s/inner 4/inner 2/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate 2>&1 | FileCheck %s --check-prefix=OVER
// OVER: error: 'tile.store' op writes an element of global memory that block (0) of the same launch wrote
//
// TMA stores no more rows than the memref's 18 places have, 72.
// RUN: sed 's/arith.constant 60/arith.constant 72/' %s > %t.mlir
// RUN: fovea-run %t.mlir --target=sm_90a --simulate
// RUN: sed 's/arith.constant 60/arith.constant 76/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_90a --simulate 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: error: 'tile.store_async' op has 76 valid rows from row 0 on, beyond the memref's 18
#acc = #tile.layout<64x64, registers = [2:1d1, 2:8d0, 8:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
#cube = affine_map<(a, b, c) -> (a, b, c)>
#square = affine_map<(a, b) -> (a, b)>
!i = memref<6x18x64xf32, strided<[?, ?, 1], offset: ?>>
!m = memref<72x64xf32, strided<[?, 1], offset: ?>>
!o = memref<18x6x64xf32, strided<[?, ?, 1], offset: ?>>
!tile = !tile.shared<64x64xf32, swizzle = 128>
!ring = !tile.ring<1 x !tile>
!f = !tile.fragment<64x64xf32, #acc>
func.func @copy() -> (tensor<72x64xf32>, tensor<18x6x64xf32>, tensor<72x64xf32>, tensor<18x6x64xf32>, tensor<18x6x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %c18 = arith.constant 18 : index
  %c60 = arith.constant 60 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant -1.0 : f32
  %e = tensor.empty() : tensor<6x18x64xf32>
  %em = tensor.empty() : tensor<72x64xf32>
  %eo = tensor.empty() : tensor<18x6x64xf32>
  %i = linalg.generic {indexing_maps = [#cube], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<6x18x64xf32>) {
  ^bb0(%x: f32):
    %h = linalg.index 0 : index
    %p = linalg.index 1 : index
    %c = linalg.index 2 : index
    %n = affine.apply affine_map<(h, p, c) -> ((h * 18 + p) * 64 + c)>(%h, %p, %c)
    %l = arith.index_cast %n : index to i64
    %y = arith.sitofp %l : i64 to f32
    linalg.yield %y : f32
  } -> tensor<6x18x64xf32>
  %m0 = linalg.fill ins(%none : f32) outs(%em : tensor<72x64xf32>) -> tensor<72x64xf32>
  %o0 = linalg.fill ins(%none : f32) outs(%eo : tensor<18x6x64xf32>) -> tensor<18x6x64xf32>

  %threads:2 = tile.launch grid(%c2) warps 4 ins(%i : tensor<6x18x64xf32>) outs(%m0, %o0 : tensor<72x64xf32>, tensor<18x6x64xf32>) {
  ^bb0(%b: index, %I: !i, %M: !m, %O: !o):
    %place = arith.muli %b, %c16 : index
    %row = arith.muli %b, %c64 : index
    %t = tile.load %I[%c1, %place, %c0] dims [1, 0, 2] inner 4 : !i -> !tile
    %f = tile.from_shared %t : !tile -> !f
    tile.store %f, %M[%row, %c0] dims [0, 1] : !f, !m
    tile.store %f, %O[%place, %c1, %c0] dims [0, 1, 2] inner 4 : !f, !o
  } -> tensor<72x64xf32>, tensor<18x6x64xf32>

  %copies:2 = tile.launch grid(%c2) warps 4 ins(%i : tensor<6x18x64xf32>) outs(%m0, %o0 : tensor<72x64xf32>, tensor<18x6x64xf32>) {
  ^bb0(%b: index, %I: !i, %M: !m, %O: !o):
    %place = arith.muli %b, %c16 : index
    %row = arith.muli %b, %c64 : index
    %left = arith.subi %c60, %row : index
    %ring = tile.ring : !ring
    %slot = tile.acquire %ring[%c0] : !ring
    tile.load_async %I[%c1, %place, %c0] dims [1, 0, 2] inner 4 into %slot signals %ring[%c0] : !i, !ring
    %t = tile.wait %ring[%c0] : !ring
    %f = tile.from_shared %t : !tile -> !f
    tile.store %f, %M[%row, %c0] dims [0, 1] : !f, !m
    tile.store_async %t, %O[%place, %c1, %c0] dims [0, 1, 2] inner 4 valid(%left) : !tile, !o
    tile.wait_stores
    tile.release %ring[%c0] : !ring
  } -> tensor<72x64xf32>, tensor<18x6x64xf32>

  // Of a clipped map the rows in front of its bounds are written.
  %maps = tile.launch grid(%c2) warps 4 ins(%i : tensor<6x18x64xf32>) outs(%o0 : tensor<18x6x64xf32>) {
  ^bb0(%b: index, %I: !i, %O: !o):
    %from = tile.tensor_map %I dims [1, 0, 2] inner 4 : !i -> !tile.tensor_map<3 x !tile>
    %to = tile.tensor_map clipped %O dims [0, 1, 2] inner 4 : !o -> !tile.tensor_map<4 x !tile>
    %place = arith.muli %b, %c16 : index
    %left = arith.subi %c15, %place : index
    %some = arith.maxsi %left, %c0 : index
    %count = arith.minsi %some, %c16 : index
    %end = arith.addi %place, %count : index
    %before = arith.subi %c16, %count : index
    %ring = tile.ring : !ring
    %slot = tile.acquire %ring[%c0] : !ring
    tile.load_async %from[%c1, %place, %c0] dims [1, 0, 2] inner 4 into %slot signals %ring[%c0] : !tile.tensor_map<3 x !tile>, !ring
    %t = tile.wait %ring[%c0] : !ring
    tile.store_async %t, %to[%end, %before, %c1, %c0] dims [1, 2, 3] inner 4 : !tile, !tile.tensor_map<4 x !tile>
    tile.wait_stores
    tile.release %ring[%c0] : !ring
  } -> tensor<18x6x64xf32>

  %md0, %md1 = linalg.generic {indexing_maps = [#square, #square, #square, #square], iterator_types = ["parallel", "parallel"]} ins(%threads#0, %copies#0 : tensor<72x64xf32>, tensor<72x64xf32>) outs(%em, %em : tensor<72x64xf32>, tensor<72x64xf32>) {
  ^bb0(%a: f32, %b: f32, %x: f32, %y: f32):
    %r = linalg.index 0 : index
    %c = linalg.index 1 : index
    %n = affine.apply affine_map<(r, c) -> (((r mod 4 + 1) * 18 + r floordiv 4) * 64 + c)>(%r, %c)
    %l = arith.index_cast %n : index to i64
    %z = arith.sitofp %l : i64 to f32
    %da = arith.subf %a, %z : f32
    %db = arith.subf %b, %z : f32
    linalg.yield %da, %db : f32, f32
  } -> (tensor<72x64xf32>, tensor<72x64xf32>)
  %od0, %od1, %od2 = linalg.generic {indexing_maps = [#cube, #cube, #cube, #cube, #cube, #cube], iterator_types = ["parallel", "parallel", "parallel"]} ins(%threads#1, %copies#1, %maps : tensor<18x6x64xf32>, tensor<18x6x64xf32>, tensor<18x6x64xf32>) outs(%eo, %eo, %eo : tensor<18x6x64xf32>, tensor<18x6x64xf32>, tensor<18x6x64xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32, %x: f32, %y: f32, %w: f32):
    %p = linalg.index 0 : index
    %h = linalg.index 1 : index
    %c = linalg.index 2 : index
    %n = affine.apply affine_map<(p, h, c) -> ((h * 18 + p) * 64 + c)>(%p, %h, %c)
    %l = arith.index_cast %n : index to i64
    %z = arith.sitofp %l : i64 to f32
    %from = arith.cmpi sge, %h, %c1 : index
    %before = arith.cmpi slt, %h, %c5 : index
    %some = arith.andi %from, %before : i1
    %early = arith.cmpi slt, %p, %c15 : index
    %valid = arith.andi %some, %early : i1
    %za = arith.select %some, %z, %none : f32
    %zb = arith.select %valid, %z, %none : f32
    %da = arith.subf %a, %za : f32
    %db = arith.subf %b, %zb : f32
    %dd = arith.subf %d, %zb : f32
    linalg.yield %da, %db, %dd : f32, f32, f32
  } -> (tensor<18x6x64xf32>, tensor<18x6x64xf32>, tensor<18x6x64xf32>)
  return %md0, %od0, %md1, %od1, %od2 : tensor<72x64xf32>, tensor<18x6x64xf32>, tensor<72x64xf32>, tensor<18x6x64xf32>, tensor<18x6x64xf32>
}
