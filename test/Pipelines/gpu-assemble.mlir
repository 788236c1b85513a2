// REQUIRES: ptxas
// Kernels of all kinds assemble, for both targets, without spills.
// RUN: fovea-compile %s --target=sm_90a --emit=cubin --print-resources -o %t 2>&1 | FileCheck %s
// RUN: fovea-compile %s --target=sm_90a --strategy=unfused --emit=cubin --print-resources -o %t 2>&1 | FileCheck %s
// RUN: fovea-compile %s --target=sm_80 --emit=cubin --print-resources -o %t 2>&1 | FileCheck %s

// CHECK-NOT: {{slower than written|, [1-9][0-9]* spilled}}
// CHECK: , 0 spilled
// CHECK-NOT: {{slower than written|, [1-9][0-9]* spilled}}

func.func @norms(%x: tensor<?x1024xbf16>, %y: tensor<?x77xf32>, %w: tensor<1024xf32>, %seed: i64, %offset: i64) -> (tensor<?x1024xbf16>, tensor<?x77xf32>) {
  %n = attn.layer_norm %x weight(%w : tensor<1024xf32>) bias(%w : tensor<1024xf32>) epsilon(1.0e-5) : tensor<?x1024xbf16>
  %d = attn.dropout %n, 0.1 seed(%seed, %offset) : tensor<?x1024xbf16>
  %r = attn.rms_norm %y epsilon(1.0e-6) : tensor<?x77xf32>
  return %d, %r : tensor<?x1024xbf16>, tensor<?x77xf32>
}

func.func @attend(%q: tensor<2x4x?x64xf16>, %k: tensor<2x2x?x64xf16>, %v: tensor<2x2x?x64xf16>) -> tensor<2x4x?x64xf16> {
  %s = attn.scores %q, %k : tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x4x?x?xf32>
  %t = attn.scale %s by 0.125 : tensor<2x4x?x?xf32>
  %m = attn.mask %t {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : tensor<2x4x?x?xf32>
  %p = attn.softmax %m : tensor<2x4x?x?xf32> -> tensor<2x4x?x?xf32>
  %o = attn.values %p, %v : tensor<2x4x?x?xf32>, tensor<2x2x?x64xf16> -> tensor<2x4x?x64xf16>
  return %o : tensor<2x4x?x64xf16>
}

func.func @functions(%x: tensor<100xf64>, %i: tensor<100xi8>, %c: tensor<100xi1>) -> (tensor<100xf64>, tensor<100xi8>, tensor<f32>) {
  %a = math.exp %x : tensor<100xf64>
  %b = math.log %a : tensor<100xf64>
  %k = math.sin %b : tensor<100xf64>
  %m = math.powf %k, %x : tensor<100xf64>
  %n = math.erf %m : tensor<100xf64>
  %d = math.tanh %n : tensor<100xf64>
  %e = arith.addi %i, %i : tensor<100xi8>
  %f = arith.select %c, %e, %i : tensor<100xi1>, tensor<100xi8>
  %z = arith.constant dense<0.0> : tensor<f32>
  %g = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%d : tensor<100xf64>) outs(%z : tensor<f32>) {
  ^bb0(%u: f64, %s: f32):
    %v = arith.truncf %u : f64 to f32
    %w = math.erf %v : f32
    %t = arith.addf %s, %w : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %d, %f, %g : tensor<100xf64>, tensor<100xi8>, tensor<f32>
}
