// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-online-softmax --attn-tile --convert-attn-to-tile \
// RUN:   --canonicalize --cse --split-input-file --remarks-filter=convert-attn-to-tile 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --allow-empty --input-file=%t

// What the scores of the backward pass read of captured tensors, as tiles
// (`captures = tiled`). Their rows are queries, those of scores are keys.

#schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>

// A bias that is added is read once: no derivative needs it.
// CHECK-LABEL: func @bias
// CHECK:       tile.launch kernel "attention_backward"
// CHECK:         scf.for %[[I:[^ ]*]] =
// CHECK:           %[[T:.*]] = tile.load %{{.*}}[%{{.*}}, %[[I]], %[[J:.*]]] dims [1, 2] : memref<2x256x256xbf16, {{.*}}> -> !tile.shared<64x128xbf16>
// CHECK:           %[[F:.*]] = tile.from_shared %[[T]] transposed : !tile.shared<64x128xbf16> -> !tile.fragment<128x64xbf16>
// CHECK:           %[[S:.*]] = tile.mma
// CHECK:           tile.map ins(%[[S]], %[[F]] :
// CHECK-NOT:       memref.load
// CHECK-NOT:       tile.from_shared {{.*}} transposed
// CHECK:           tile.to_shared
func.func @bias(%x: tensor<1x2x256x64xbf16>, %l: tensor<1x2x256xf32>, %c: tensor<2x256x256xbf16>) -> tensor<1x2x256x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<1x2x256xf32>, tensor<1x2x256xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %c[%h, %i, %j] : tensor<2x256x256xbf16>
    %f = arith.extf %e : bf16 to f32
    %t = arith.addf %s, %f : f32
    attn.yield %t : f32
  } {schedule = #schedule} : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>
  return %dq : tensor<1x2x256x64xbf16>
}

// -----

#schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>

// The derivative has factors as they were read.
// CHECK-LABEL: func @factors
// CHECK:           %[[T:.*]] = tile.load %{{.*}} : memref<256x256xf32, {{.*}}> -> !tile.shared<64x128xf32>
// CHECK:           %[[F:.*]] = tile.from_shared %[[T]] transposed : !tile.shared<64x128xf32> -> !tile.fragment<128x64xf32>
// CHECK:           tile.map ins(%{{.*}}, %[[F]] :
// CHECK:           math.exp2
// CHECK:           tile.map ins(%{{.*}}, %[[F]]{{[, ]}}
// CHECK-NOT:       memref.load
// CHECK:           tile.to_shared
func.func @factors(%x: tensor<1x2x256x64xbf16>, %l: tensor<1x2x256xf32>, %c: tensor<256x256xf32>) -> tensor<1x2x256x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<1x2x256xf32>, tensor<1x2x256xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %c[%i, %j] : tensor<256x256xf32>
    %t = arith.mulf %s, %e : f32
    attn.yield %t : f32
  } {schedule = #schedule} : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>
  return %dq : tensor<1x2x256x64xbf16>
}

// -----

#schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>

// Numbers of distances, i - j + 255: a row's step is that of keys.
// CHECK-LABEL: func @distances
// CHECK:           %[[T:.*]] = tile.load %{{.*}} dims [0, 1] : memref<2x512xf32, {{.*}}> -> !tile.shared<1x192xf32>
// CHECK:           tile.from_shared %[[T]][%{{.*}}] by [-1, 1] : !tile.shared<1x192xf32> -> !tile.fragment<128x64xf32>
func.func @distances(%x: tensor<1x2x256x64xbf16>, %l: tensor<1x2x256xf32>, %c: tensor<2x512xf32>) -> tensor<1x2x256x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<1x2x256xf32>, tensor<1x2x256xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c255 = arith.constant 255 : index
    %d = arith.subi %i, %j : index
    %p = arith.addi %d, %c255 : index
    %e = tensor.extract %c[%h, %p] : tensor<2x512xf32>
    %t = arith.addf %s, %e : f32
    attn.yield %t : f32
  } {schedule = #schedule} : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>
  return %dq : tensor<1x2x256x64xbf16>
}

// -----

#schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>

// A mask's booleans come so, beside a number of each query, which has words.
// CHECK-LABEL: func @mask
// CHECK-DAG:       %[[W:.*]] = tile.load %{{.*}} -> !tile.shared<1x64xi32>
// CHECK-DAG:       %[[T:.*]] = tile.load %{{.*}} : memref<256x256xi1, {{.*}}> -> !tile.shared<64x128xi1>
// CHECK-DAG:       %[[N:.*]] = tile.from_shared %[[W]] : !tile.shared<1x64xi32> -> !tile.fragment<64xi32>
// CHECK-DAG:       %[[B:.*]] = tile.from_shared %[[T]] transposed : !tile.shared<64x128xi1> -> !tile.fragment<128x64xi1>
// CHECK:           tile.map ins(%{{.*}}, %[[B]] : {{.*}} columns(%[[N]] :
// CHECK-NOT:       memref.load
// CHECK:           tile.to_shared
func.func @mask(%x: tensor<1x2x256x64xbf16>, %l: tensor<1x2x256xf32>, %m: tensor<256x256xi1>, %w: tensor<256xi32>) -> tensor<1x2x256x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<1x2x256xf32>, tensor<1x2x256xf32>) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %m[%i, %j] : tensor<256x256xi1>
    %n = tensor.extract %w[%i] : tensor<256xi32>
    %end = arith.index_cast %n : i32 to index
    %c = arith.cmpi slt, %j, %end : index
    %kept = arith.andi %e, %c : i1
    attn.yield %kept : i1
  } {schedule = #schedule} : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>
  return %dq : tensor<1x2x256x64xbf16>
}

// -----

#schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, gradients = <parallel = [batch, head, key]>>

// Without `captures = tiled` elements are read one by one.
// CHECK-LABEL: func @gathered
// CHECK-NOT:       tile.load {{.*}} : memref<2x256x256xbf16
// CHECK:           memref.load {{.*}} : memref<2x256x256xbf16
func.func @gathered(%x: tensor<1x2x256x64xbf16>, %l: tensor<1x2x256xf32>, %c: tensor<2x256x256xbf16>) -> tensor<1x2x256x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<1x2x256xf32>, tensor<1x2x256xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %c[%h, %i, %j] : tensor<2x256x256xbf16>
    %f = arith.extf %e : bf16 to f32
    %t = arith.addf %s, %f : f32
    attn.yield %t : f32
  } {schedule = #schedule} : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>
  return %dq : tensor<1x2x256x64xbf16>
}

// -----

#schedule = #attn.schedule<tile = 64x128, order = linear, warps = 8, stages = 2, captures = tiled, gradients = <parallel = [batch, head, key]>>

// So are numbers of 64 bits, and those at other places than of query and key.
// REMARK-NOT: remark
// CHECK-LABEL: func @others
// CHECK-NOT:       tile.from_shared {{.*}} transposed
// CHECK:           memref.load {{.*}} : memref<256x256xf64
// CHECK:           memref.load {{.*}} : memref<128x256xbf16
func.func @others(%x: tensor<1x2x256x64xbf16>, %l: tensor<1x2x256xf32>, %c: tensor<256x256xf64>, %e: tensor<128x256xbf16>) -> tensor<1x2x256x64xbf16> {
  %dq, %dk, %dv = attn.attention_backward %x, %x, %x, %x scale(0.125) statistics(%l, %l : tensor<1x2x256xf32>, tensor<1x2x256xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c2 = arith.constant 2 : index
    %half = arith.divui %i, %c2 : index
    %x0 = tensor.extract %c[%i, %j] : tensor<256x256xf64>
    %y0 = tensor.extract %e[%half, %j] : tensor<128x256xbf16>
    %x1 = arith.truncf %x0 : f64 to f32
    %y1 = arith.extf %y0 : bf16 to f32
    %t0 = arith.addf %s, %x1 : f32
    %t1 = arith.addf %t0, %y1 : f32
    attn.yield %t1 : f32
  } {schedule = #schedule} : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>
  return %dq : tensor<1x2x256x64xbf16>
}
