// Where static sizes fold loops of one iteration, or of none, and where gradients
// are sums at computed places, all strategies compile, forward and backward.
// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_90a}, fovea-gradient-pipeline{recompute=always})" -o %t.sm_90a
// RUN: fovea-opt %s --pass-pipeline="builtin.module(attach-gpu-target{target=sm_80}, fovea-gradient-pipeline{recompute=always})" -o %t.sm_80
// RUN: fovea-compile %t.sm_90a --target=sm_90a --strategy=fused --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
// RUN: fovea-compile %t.sm_90a --target=sm_90a --strategy=two-pass --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
// RUN: fovea-compile %t.sm_90a --target=sm_90a --strategy=three-pass --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
// RUN: fovea-compile %t.sm_90a --target=sm_90a --strategy=unfused --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
// RUN: fovea-compile %t.sm_80 --target=sm_80 --strategy=fused --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
// RUN: fovea-compile %t.sm_80 --target=sm_80 --strategy=two-pass --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
// RUN: fovea-compile %t.sm_80 --target=sm_80 --strategy=three-pass --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
// RUN: fovea-compile %t.sm_80 --target=sm_80 --strategy=unfused --emit=llvm | FileCheck %s --implicit-check-not=unrealized_conversion_cast --implicit-check-not=fovea_gpu_read
//
// The gradient of a table is one kernel of a thread for each term.
// RUN: fovea-compile %t.sm_90a --target=sm_90a --strategy=unfused --emit=gpu | FileCheck %s --check-prefix=SCATTER
// RUN: fovea-compile %t.sm_90a --target=sm_90a --strategy=unfused --deterministic --emit=gpu | FileCheck %s --check-prefix=ORDER
//
// No kernel and no tensor map gets the address of a constant on the host.
// RUN: fovea-compile %t.sm_90a --target=sm_90a --emit=gpu | FileCheck %s --check-prefix=COPY
// RUN: fovea-run %s --entry=constants --target=sm_90a --simulate --random=1 --check --grad

// CHECK: llvm.func @mask_one_tile(
// CHECK: llvm.func @mask_one_tile_gradient(
// CHECK: llvm.func @documents_one_tile(
// CHECK: llvm.func @documents_one_tile_gradient(
// CHECK: llvm.func @never(
// CHECK: llvm.func @never_gradient(
// CHECK: llvm.func @table(
// CHECK: llvm.func @table_gradient(
// CHECK: llvm.func @constants(
// CHECK: llvm.func @constants_gradient(

func.func @mask_one_tile(%q: tensor<1x1x16x64xf32>, %keep: tensor<16xi1>) -> tensor<1x1x16x64xf32> {
  %o = attn.attention %q, %q, %q scale(1.0) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %m = tensor.extract %keep[%j] : tensor<16xi1>
    attn.yield %m : i1
  } : tensor<1x1x16x64xf32>, tensor<1x1x16x64xf32>, tensor<1x1x16x64xf32> -> tensor<1x1x16x64xf32>
  return %o : tensor<1x1x16x64xf32>
}

func.func @documents_one_tile(%q: tensor<1x1x24x64xbf16>, %k: tensor<1x1x24x64xbf16>, %v: tensor<1x1x24x64xbf16>, %ids: tensor<24xi32>) -> tensor<1x1x24x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<24xi32>
    %y = tensor.extract %ids[%j] : tensor<24xi32>
    %m = arith.cmpi eq, %x, %y : i32
    attn.yield %m : i1
  } : tensor<1x1x24x64xbf16>, tensor<1x1x24x64xbf16>, tensor<1x1x24x64xbf16> -> tensor<1x1x24x64xbf16>
  return %o : tensor<1x1x24x64xbf16>
}

func.func @never(%q: tensor<1x1x5x96xbf16>) -> tensor<1x1x5x96xbf16> {
  %o = attn.attention %q, %q, %q scale(1.0) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 26 : index
    %s = arith.addi %j, %c : index
    %m = arith.cmpi sle, %s, %i : index
    attn.yield %m : i1
  } : tensor<1x1x5x96xbf16>, tensor<1x1x5x96xbf16>, tensor<1x1x5x96xbf16> -> tensor<1x1x5x96xbf16>
  return %o : tensor<1x1x5x96xbf16>
}

// SCATTER-LABEL: func.func @table_gradient(
// SCATTER-NOT:   scf.for
// SCATTER:       return
// SCATTER-COUNT-1: memref.atomic_rmw addf
// SCATTER-NOT:   atomic_rmw
// ORDER-LABEL: func.func @table_gradient(
// ORDER-NOT:   scf.for
// ORDER:       return
// ORDER-NOT:   atomic_rmw addf
// ORDER:       memref.atomic_rmw addi
// ORDER-NOT:   atomic_rmw addf
func.func @table(%q: tensor<1x1x4x8xf32>, %t: tensor<4xf32>) -> tensor<1x1x4x8xf32> {
  %o = attn.attention %q, %q, %q scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %a = math.absi %d : index
    %e = tensor.extract %t[%a] : tensor<4xf32>
    %r = arith.addf %s, %e : f32
    attn.yield %r : f32
  } : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32> -> tensor<1x1x4x8xf32>
  return %o : tensor<1x1x4x8xf32>
}

// COPY-LABEL: func.func @constants(
// COPY-NOT:   memref.get_global
// COPY:       %[[COPY:.*]] = memref.alloc() : memref<1x1x2x8xf16>
// COPY:       gpu.launch_func {{.*}} args(%[[COPY]] :
// COPY-NOT:   memref.get_global
// COPY:       return
// COPY-LABEL: func.func @constants_gradient(
// COPY-NOT:   memref.get_global
// COPY:       return
func.func @constants(%q: tensor<1x1x4x8xf16>) -> tensor<1x1x4x8xf16> {
  %k = arith.constant dense<[[[[1.0, 0.0, 2.0, 0.5, 1.0, 0.0, -1.0, 0.5], [0.0, -1.0, 1.0, 1.5, 0.5, 2.0, 1.0, 0.0]]]]> : tensor<1x1x2x8xf16>
  %o = attn.attention %q, %k, %k scale(1.0) : tensor<1x1x4x8xf16>, tensor<1x1x2x8xf16>, tensor<1x1x2x8xf16> -> tensor<1x1x4x8xf16>
  return %o : tensor<1x1x4x8xf16>
}
