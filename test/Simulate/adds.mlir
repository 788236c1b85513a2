// Blocks that add to memory in maps, element by element; what adds otherwise, or
// writes what others add to, is a fault.
//
// RUN: fovea-run %s --target=sm_80 --simulate --seeds=4 | FileCheck %s
// RUN: sed 's/atomic_rmw addf/atomic_rmw maximumf/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_80 --simulate 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: sed 's/tile.yield %x/tile.yield %old/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_80 --simulate 2>&1 | FileCheck %s --check-prefix=USED
// RUN: sed 's/%old = .*/memref.store %x, %O[%i, %j] : !o/' %s > %t.mlir
// RUN: not fovea-run %t.mlir --target=sm_80 --simulate 2>&1 | FileCheck %s --check-prefix=WRITTEN
//
// RUN: sed 's/atomic_rmw addf %x/atomic_rmw addi %n/; s/(f32, !o) -> f32/(i32, !n) -> i32/; s/!o = .*/!n = memref<64x16xi32, strided<[?, 1], offset: ?>>/; s/%O: !o/%O: !n/; s/arith.constant 0.0 : f32/arith.constant -5 : i32/; s/%zero : f32/%zero : i32/; s/tensor<64x16xf32>/tensor<64x16xi32>/g' %s > %t.mlir
// RUN: fovea-run %t.mlir --target=sm_80 --simulate --seeds=4 | FileCheck %s --check-prefix=INTEGERS
//
// CHECK: result 0: f32 64x16, {{.*}}min 3, max 3{{$}}
// INTEGERS: result 0: i32 64x16, {{.*}}min -2, max -2{{$}}
// KIND: error: 'memref.atomic_rmw' op expected `addf` or `addi` whose result is not used, got maximumf
// USED: error: 'memref.atomic_rmw' op expected `addf` or `addi` whose result is not used, got addf
// WRITTEN: error: 'memref.store' op writes an element of global memory that block (0) of the same launch wrote
#acc = #tile.layout<64x16, registers = [2:1d1, 2:8d0, 2:8d1], threads = [4:2d1, 8:1d0, 4:16d0]>
!o = memref<64x16xf32, strided<[?, 1], offset: ?>>
func.func @add() -> tensor<64x16xf32> {
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %r = tile.launch grid(%c3) warps 4 outs(%zeros : tensor<64x16xf32>) {
  ^bb0(%b: index, %O: !o):
    %ones = tile.fill %one : !tile.fragment<64x16xf32, #acc>
    %m = tile.map ins(%ones : !tile.fragment<64x16xf32, #acc>) {
    ^bb0(%x: f32, %i: index, %j: index):
      %n = arith.fptosi %x : f32 to i32
      %old = memref.atomic_rmw addf %x, %O[%i, %j] : (f32, !o) -> f32
      tile.yield %x : f32
    } -> !tile.fragment<64x16xf32, #acc>
  } -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}
