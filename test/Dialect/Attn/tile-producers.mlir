// RUN: fovea-opt %s --attn-online-softmax --attn-tile --split-input-file --remarks-filter=attn-tile 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-keys=always --split-input-file | FileCheck %s --check-prefix=ALWAYS
// RUN: fovea-opt %s --attn-online-softmax --attn-tile=fuse-keys=never --split-input-file | FileCheck %s --check-prefix=NEVER

#id = affine_map<(b, h, i, d) -> (b, h, i, d)>
#row = affine_map<(b, h, i, d) -> (b, h, i)>

module attributes {machine.target = #machine.target<"host", arch = "avx512", cores = 2, vector_bytes = 64, vector_registers = 32, fast_memory = 32768, near_memory = 1048576, bandwidth = 16000, peak = 320>} {

// One tile of queries: each key is normed, rotated and loaded once, with the
// rows of the tables that its tile needs. Values are scaled likewise.

// CHECK-LABEL: func @decode
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x2x1x16xf32>, %[[K:[^:]*]]: tensor<1x2x4096x16xf32>, %[[V:[^:]*]]: tensor<1x2x4096x16xf32>, %[[COS:[^:]*]]: tensor<4096x8xf32>
// CHECK-NOT:   attn.rms_norm
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %{{.*}}) in (1, 2, 1)
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK-DAG:       %[[KT:.*]] = tensor.extract_slice %[[K]][%[[B]], %[[H]], %[[J]], 0] [1, 1, 64, 16]
// CHECK-DAG:       %[[N:.*]] = attn.rms_norm %[[KT]]
// CHECK-DAG:       %[[COST:.*]] = tensor.extract_slice %[[COS]][%[[J]], 0] [64, 8]
// CHECK-DAG:       %[[R:.*]] = attn.rope %[[N]], %[[COST]],
// CHECK-DAG:       %[[VT:.*]] = tensor.extract_slice %[[V]][%[[B]], %[[H]], %[[J]], 0] [1, 1, 64, 16]
// CHECK-DAG:       %[[VS:.*]] = attn.scale %[[VT]]
// CHECK:           attn.online_attention {{.*}} ins(%{{.*}}, %[[R]], %[[VS]] :

// REMARK: remark: [Passed] key-producer | Category:attn-tile | Function=decode | Remark="attn.rms_norm, attn.rope is computed where attention loads it: each key is read 1.0 times, which by the model takes {{.*}} us less than a kernel of its own"
// REMARK: [Passed] key-producer | {{.*}} Remark="attn.scale is computed where attention loads it:

// NEVER-LABEL: func @decode
// NEVER:         attn.rms_norm
// NEVER:         attn.rope
// NEVER:         scf.forall
func.func @decode(%q: tensor<1x2x1x16xf32>, %k: tensor<1x2x4096x16xf32>, %v: tensor<1x2x4096x16xf32>, %cos: tensor<4096x8xf32>, %sin: tensor<4096x8xf32>) -> tensor<1x2x1x16xf32> {
  %n = attn.rms_norm %k epsilon(1.0e-6) : tensor<1x2x4096x16xf32>
  %r = attn.rope %n, %cos, %sin : tensor<1x2x4096x16xf32>, tensor<4096x8xf32>, tensor<4096x8xf32>
  %s = attn.scale %v by 0.5 : tensor<1x2x4096x16xf32>
  %o = attn.attention %q, %r, %s scale(0.25) {schedule = #attn.schedule<tile = 16x64, order = linear>}
    : tensor<1x2x1x16xf32>, tensor<1x2x4096x16xf32>, tensor<1x2x4096x16xf32> -> tensor<1x2x1x16xf32>
  return %o : tensor<1x2x1x16xf32>
}

// Many tiles of queries, in each of four heads: a kernel of its own.

// CHECK-LABEL: func @prefill
// CHECK:       %[[R:.*]] = attn.rope
// CHECK:       scf.forall
// CHECK:         tensor.extract_slice %[[R]]

// REMARK: [Missed] key-producer | {{.*}} Function=prefill | Remark="attn.rope stays before the loops of attention: each key is read 88.0 times, which by the model takes {{.*}} us more than a kernel of its own"

// ALWAYS-LABEL: func @prefill
// ALWAYS-NOT:     attn.rope
// ALWAYS:         scf.for %
// ALWAYS:           attn.rope
func.func @prefill(%q: tensor<1x8x1024x16xf32>, %k: tensor<1x2x1024x16xf32>, %cos: tensor<1024x8xf32>, %sin: tensor<1024x8xf32>) -> tensor<1x8x1024x16xf32> {
  %r = attn.rope %k, %cos, %sin : tensor<1x2x1024x16xf32>, tensor<1024x8xf32>, tensor<1024x8xf32>
  %o = attn.attention %q, %r, %k scale(0.25) {schedule = #attn.schedule<tile = 48x64, order = linear>}
    : tensor<1x8x1024x16xf32>, tensor<1x2x1024x16xf32>, tensor<1x2x1024x16xf32> -> tensor<1x8x1024x16xf32>
  return %o : tensor<1x8x1024x16xf32>
}

// Rotated keys that are a result are computed once, whatever the option says.

// CHECK-LABEL: func @cached
// CHECK:       attn.rope
// CHECK:       scf.forall

// REMARK: [Missed] key-producer | {{.*}} Function=cached | Remark="attn.rope is not computed where attention loads it: others read its result too"

// ALWAYS-LABEL: func @cached
// ALWAYS:         attn.rope
// ALWAYS:         scf.forall
// ALWAYS-NOT:       attn.rope
// ALWAYS:         return
func.func @cached(%q: tensor<1x2x1x16xf32>, %k: tensor<1x2x64x16xf32>, %cos: tensor<64x8xf32>, %sin: tensor<64x8xf32>) -> (tensor<1x2x1x16xf32>, tensor<1x2x64x16xf32>) {
  %r = attn.rope %k, %cos, %sin : tensor<1x2x64x16xf32>, tensor<64x8xf32>, tensor<64x8xf32>
  %o = attn.attention %q, %r, %k scale(0.25) {schedule = #attn.schedule<tile = 16x64, order = linear>}
    : tensor<1x2x1x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32> -> tensor<1x2x1x16xf32>
  return %o, %r : tensor<1x2x1x16xf32>, tensor<1x2x64x16xf32>
}

// A tensor that is keys and values is computed once for both.

// CHECK-LABEL: func @both
// CHECK:       scf.for %
// CHECK:         %[[KV:.*]] = linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         attn.online_attention {{.*}} ins(%{{.*}}, %[[KV]], %[[KV]] :
func.func @both(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x64x16xi8>, %s: tensor<1x2x64xf32>) -> tensor<1x2x8x16xf32> {
  %e = tensor.empty() : tensor<1x2x64x16xf32>
  %f = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %s : tensor<1x2x64x16xi8>, tensor<1x2x64xf32>) outs(%e : tensor<1x2x64x16xf32>) {
  ^bb0(%a: i8, %b: f32, %c: f32):
    %x = arith.sitofp %a : i8 to f32
    %z = arith.mulf %x, %b : f32
    linalg.yield %z : f32
  } -> tensor<1x2x64x16xf32>
  %o = attn.attention %q, %f, %f scale(0.25) {schedule = #attn.schedule<tile = 16x16, order = linear>}
    : tensor<1x2x8x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32> -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}
}
