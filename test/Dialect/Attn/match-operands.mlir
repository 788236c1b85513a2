// RUN: fovea-opt %s --attach-gpu-target=target=sm_90a --attn-match-operands --remarks-filter=attn-match-operands 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t --implicit-check-not=Remark=
// RUN: fovea-opt %s --attn-match-operands | FileCheck %s --check-prefix=HOST --implicit-check-not=arith

// HOST: attn.attention

// A result may have another type.
// CHECK-LABEL: func @same(
// CHECK-NOT:   arith
// CHECK:       return
func.func @same(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>) -> tensor<1x2x?x64xf32> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xf32>
  return %o : tensor<1x2x?x64xf32>
}

// To the widest.
// REMARK: Remark="operands of different element types are converted to f32
// CHECK-LABEL: func @wider(
// CHECK-SAME:  %[[Q:.*]]: tensor<1x2x?x64xbf16>, %[[K:.*]]: tensor<1x2x?x64xf32>, %[[V:[^:]*]]:
// CHECK-DAG:   %[[QW:.*]] = arith.extf %[[Q]] : tensor<1x2x?x64xbf16> to tensor<1x2x?x64xf32>
// CHECK-DAG:   %[[VW:.*]] = arith.extf %[[V]] : tensor<1x2x?x64xbf16> to tensor<1x2x?x64xf32>
// CHECK:       attn.attention %[[QW]], %[[K]], %[[VW]] {{.*}} -> tensor<1x2x?x64xbf16>
func.func @wider(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xbf16>) -> tensor<1x2x?x64xbf16> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xbf16>
  return %o : tensor<1x2x?x64xbf16>
}

// Neither bf16 nor f16 has all numbers of the other.
// REMARK: Remark="operands of different element types are converted to f32
// CHECK-LABEL: func @neither(
// CHECK-COUNT-3: arith.extf {{.*}} to tensor<1x2x?x64xf32>
// CHECK:       attn.attention {{.*}} -> tensor<1x2x?x64xf16>
func.func @neither(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>) -> tensor<1x2x?x64xf16> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xf16>
  return %o : tensor<1x2x?x64xf16>
}

// REMARK: Remark="operands of different element types are converted to f64
// CHECK-LABEL: func @double(
// CHECK:       arith.extf {{.*}} to tensor<1x2x?x64xf64>
// CHECK-NOT:   arith
// CHECK:       attn.attention
func.func @double(%q: tensor<1x2x?x64xf64>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf64>) -> tensor<1x2x?x64xf64> {
  %o = attn.attention %q, %k, %v scale(0.125) : tensor<1x2x?x64xf64>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf64> -> tensor<1x2x?x64xf64>
  return %o : tensor<1x2x?x64xf64>
}

// CHECK-LABEL: func @same_backward(
// CHECK-NOT:   arith
// CHECK:       return
func.func @same_backward(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>, %do: tensor<1x2x?x64xf16>, %l: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%l, %l : tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>
  return %dq, %dk, %dv : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>
}

// The output's gradient is rounded to the operands' type,
// REMARK: Remark="operands of different element types are converted to bf16
// CHECK-LABEL: func @rounded(
// CHECK:       %[[DO:.*]] = arith.truncf {{.*}} : tensor<1x2x?x64xf32> to tensor<1x2x?x64xbf16>
// CHECK-NOT:   arith
// CHECK:       attn.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %[[DO]]
func.func @rounded(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %do: tensor<1x2x?x64xf32>, %l: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%l, %l : tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf32> -> tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>
  return %dq, %dk, %dv : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>
}

// which must have its range. Gradients have the types of what they are of.
// REMARK: Remark="operands of different element types are converted to f32
// CHECK-LABEL: func @range(
// CHECK-COUNT-3: arith.extf {{.*}} to tensor<1x2x?x64xf32>
// CHECK-NOT:   arith
// CHECK:       attn.attention_backward {{.*}} -> tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>
func.func @range(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>, %do: tensor<1x2x?x64xf32>, %l: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%l, %l : tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf32> -> tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>
  return %dq, %dk, %dv : tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>
}

// REMARK: Remark="operands of different element types are converted to f32
// CHECK-LABEL: func @narrower(
// CHECK:       arith.extf {{.*}} to tensor<1x2x?x64xf32>
// CHECK-NOT:   arith
// CHECK:       attn.attention_backward
func.func @narrower(%q: tensor<1x2x?x64xf32>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf32>, %do: tensor<1x2x?x64xbf16>, %l: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%l, %l : tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xbf16> -> tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>
  return %dq, %dk, %dv : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>
}

// REMARK: Remark="operands of different element types are converted to f32
// CHECK-LABEL: func @mixed(
// CHECK-COUNT-3: arith.extf {{.*}} to tensor<1x2x?x64xf32>
// CHECK:       attn.attention_backward {{.*}} -> tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf16>
func.func @mixed(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf16>, %do: tensor<1x2x?x64xf16>, %l: tensor<1x2x?xf32>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf16>) {
  %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %do scale(0.125) statistics(%l, %l : tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16> -> tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf16>
  return %dq, %dk, %dv : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf16>
}
