// Keys and values that ops in front widen from 8 bits, whatever ops these are.
//
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-select-schedule --remarks-filter=attn-select-schedule 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t --implicit-check-not="from 8 bits"
// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --expand-scalars --canonicalize --attn-select-schedule | FileCheck %s
// RUN: fovea-opt %s --attach-gpu-target=target=sm_80 --attn-select-schedule --remarks-filter=attn-select-schedule 2>%t | FileCheck %s --check-prefix=SM80
// RUN: FileCheck %s --check-prefix=REMARK80 --input-file=%t

#each = {indexing_maps = [affine_map<(b, h, j, d) -> (b, h, j, d)>, affine_map<(b, h, j, d) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}

// CHECK-LABEL: func @both(
// CHECK:       tile = 16x256, order = linear, warps = 4, stages = 4, widen = products>
// SM80-LABEL:  func @both(
// SM80:        attn.attention
// SM80-NOT:    widen =
// REMARK80:    select-schedule-widen.mlir:[[@LINE+15]]:8: {{.*}}a kernel in front widens keys and values from 8 bits: "sm_80" has no copies for a role that widens
func.func @both(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
  return %o : tensor<2x2x4x64xf16>
}

// Rows of 40 bytes have no swizzle.
// CHECK-LABEL: func @head_dim(
// CHECK-NOT:   widen =
// REMARK:      select-schedule-widen.mlir:[[@LINE+15]]:8: {{.*}}a kernel in front widens keys and values from 8 bits: a head dim is no multiple of 32
func.func @head_dim(%q: tensor<2x2x4x40xf16>, %ks: tensor<2x2x256x40xi8>, %vs: tensor<2x2x256x40xi8>) -> tensor<2x2x4x40xf16> {
  %e = tensor.empty() : tensor<2x2x256x40xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x40xi8>) outs(%e : tensor<2x2x256x40xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x40xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x40xi8>) outs(%e : tensor<2x2x256x40xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x40xf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x4x40xf16>, tensor<2x2x256x40xf16>, tensor<2x2x256x40xf16> -> tensor<2x2x4x40xf16>
  return %o : tensor<2x2x4x40xf16>
}

// CHECK-LABEL: func @keys_alone(
// CHECK-NOT:   widen =
func.func @keys_alone(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xf16>) -> tensor<2x2x4x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %vs scale(0.125) : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
  return %o : tensor<2x2x4x64xf16>
}

// One byte of 256 is another number.
// CHECK-LABEL: func @not_a_number(
// CHECK-NOT:   widen =
func.func @not_a_number(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %low = arith.constant 127 : i8
    %top = arith.constant 126 : i8
    %is = arith.cmpi eq, %bits, %low : i8
    %other = arith.select %is, %top, %bits : i8
    %small = arith.bitcast %other : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
  return %o : tensor<2x2x4x64xf16>
}

// Products of f32 have no such role.
// CHECK-LABEL: func @floats(
// CHECK-NOT:   widen =
// REMARK:      select-schedule-widen.mlir:[[@LINE+15]]:8: {{.*}}a kernel in front widens keys and values from 8 bits: its products are not those of 16 bits
func.func @floats(%q: tensor<2x2x4x64xf32>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf32> {
  %e = tensor.empty() : tensor<2x2x256x64xf32>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf32>) {
  ^bb0(%bits: i8, %x: f32):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f32
    linalg.yield %y : f32
  } -> tensor<2x2x256x64xf32>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf32>) {
  ^bb0(%bits: i8, %x: f32):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f32
    linalg.yield %y : f32
  } -> tensor<2x2x256x64xf32>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x4x64xf32>, tensor<2x2x256x64xf32>, tensor<2x2x256x64xf32> -> tensor<2x2x4x64xf32>
  return %o : tensor<2x2x4x64xf32>
}

// More queries than the rows of an instruction have a role that widens, and so have
// values of which four warps cannot share the features.
// CHECK-LABEL: func @many_queries(
// CHECK:       warps = 4, stages = {{[2-8]}},{{.*}} widen = 4>
func.func @many_queries(%q: tensor<2x2x17x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x17x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x17x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x17x64xf16>
  return %o : tensor<2x2x17x64xf16>
}

// CHECK-LABEL: func @narrow_values(
// CHECK:       warps = 4, stages = {{[2-8]}},{{.*}} widen = 4>
func.func @narrow_values(%q: tensor<2x2x4x96xf16>, %ks: tensor<2x2x256x96xi8>, %vs: tensor<2x2x256x96xi8>) -> tensor<2x2x4x96xf16> {
  %e = tensor.empty() : tensor<2x2x256x96xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x96xi8>) outs(%e : tensor<2x2x256x96xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x96xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x96xi8>) outs(%e : tensor<2x2x256x96xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x96xf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x4x96xf16>, tensor<2x2x256x96xf16>, tensor<2x2x256x96xf16> -> tensor<2x2x4x96xf16>
  return %o : tensor<2x2x4x96xf16>
}

// A stage has 64 KB at most, and the multiple of a part's size.
// CHECK-LABEL: func @wide(
// CHECK:       tile = 16x128, order = linear, warps = 4, stages = 2, {{.*}}widen = products>
func.func @wide(%q: tensor<2x2x16x256xf16>, %ks: tensor<2x2x256x256xi8>, %vs: tensor<2x2x256x256xi8>) -> tensor<2x2x16x256xf16> {
  %e = tensor.empty() : tensor<2x2x256x256xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x256xi8>) outs(%e : tensor<2x2x256x256xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x256xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x256xi8>) outs(%e : tensor<2x2x256x256xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x256xf16>
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<2x2x16x256xf16>, tensor<2x2x256x256xf16>, tensor<2x2x256x256xf16> -> tensor<2x2x16x256xf16>
  return %o : tensor<2x2x16x256xf16>
}

// CHECK-LABEL: func @parts(
// CHECK:       tile = 16x128, order = linear, warps = 4, stages = 8, split = fixed(128), widen = products>
func.func @parts(%q: tensor<2x2x4x64xf16>, %ks: tensor<2x2x256x64xi8>, %vs: tensor<2x2x256x64xi8>) -> tensor<2x2x4x64xf16> {
  %e = tensor.empty() : tensor<2x2x256x64xf16>
  %k = linalg.generic #each ins(%ks : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %v = linalg.generic #each ins(%vs : tensor<2x2x256x64xi8>) outs(%e : tensor<2x2x256x64xf16>) {
  ^bb0(%bits: i8, %x: f16):
    %small = arith.bitcast %bits : i8 to f8E4M3FN
    %y = arith.extf %small : f8E4M3FN to f16
    linalg.yield %y : f16
  } -> tensor<2x2x256x64xf16>
  %o = attn.attention %q, %k, %v scale(0.125) {split_size = 128 : i64} : tensor<2x2x4x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16> -> tensor<2x2x4x64xf16>
  return %o : tensor<2x2x4x64xf16>
}
