// A module says by `attn.schedules` what an autotuner has found: attention without a
// schedule gets it, in the order of the text, and `unit` leaves the choice to the
// model. What has a schedule keeps it, and does not count.

// RUN: fovea-opt %s --attn-select-schedule | FileCheck %s
// RUN: fovea-opt %s --attn-select-schedule --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG

// CHECK-NOT: attn.schedules
// CHECK-LABEL: @first
// CHECK: schedule = #attn.schedule<tile = 24x16, order = linear>
// CHECK-LABEL: @written
// CHECK: schedule = #attn.schedule<tile = 8x8, order = linear>
// CHECK-LABEL: @backward
// CHECK: schedule = #attn.schedule<tile = 16x24, order = linear, gradients = <{{.*}}>>
// CHECK-LABEL: @last
// CHECK: schedule = #attn.schedule<tile = {{[0-9]+x[0-9]+}}, order = linear>
// CHECK-NOT: 24x16

// LOG: [attn-select-schedule] the attention at loc({{.*}}) is given #attn.schedule<tile = 24x16, order = linear>
// LOG: [attn-select-schedule] the attention at loc({{.*}}) is given #attn.schedule<tile = 16x24, order = linear>
// LOG: [attn-select-schedule] on a host

!t = tensor<1x2x64x16xf32>
!r = tensor<1x2x64xf32>
module attributes {attn.schedules = [#attn.schedule<tile = 24x16, order = linear>, #attn.schedule<tile = 16x24, order = linear>, unit]} {
  func.func @first(%q: !t, %k: !t, %v: !t) -> !t {
    %o = attn.attention %q, %k, %v scale(1.0) : !t, !t, !t -> !t
    return %o : !t
  }
  func.func @written(%q: !t, %k: !t, %v: !t) -> !t {
    %o = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 8x8, order = linear>} : !t, !t, !t -> !t
    return %o : !t
  }
  func.func @backward(%q: !t, %k: !t, %v: !t, %g: !t, %lse: !r, %delta: !r) -> (!t, !t, !t) {
    %dq, %dk, %dv = attn.attention_backward %q, %k, %v, %g scale(1.0) statistics(%lse, %delta : !r, !r) : !t, !t, !t, !t -> !t, !t, !t
    return %dq, %dk, %dv : !t, !t, !t
  }
  func.func @last(%q: !t, %k: !t, %v: !t) -> !t {
    %o = attn.attention %q, %k, %v scale(1.0) : !t, !t, !t -> !t
    return %o : !t
  }
}
