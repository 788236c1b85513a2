// The schedules that the model considers valid are measured, and later compilations
// of the same text take the fastest, by any tool.

// RUN: rm -rf %t && mkdir -p %t
// RUN: export FOVEA_CACHE_DIR=%t/cache
// RUN: fovea-run %s --entry=attend --random=1 --tune --check > %t/first
// RUN: fovea-compile %s --emit=fused >> %t/first
// RUN: FileCheck %s --input-file=%t/first
// RUN: FileCheck %s --input-file=%t/first --check-prefix=BEST

// CHECK: attention of line [[#]]: [[ALL:[0-9]+]] of [[ALL]] schedules
// CHECK-NEXT: predicted, us  measured, us  to the model's  schedule
// CHECK-NEXT: {{^ *[0-9]+\.[0-9] +[0-9]+\.[0-9] +}}1.000  #attn.schedule<tile = {{[0-9]+x[0-9]+}}, order = longest_first>, the model's choice
// CHECK: tune: later compilations of this text take the best; kept in '{{.*}}/cache'
// CHECK-NEXT: result 0: f32 1x2x64x16,
// CHECK-NEXT: check: result 0: max error {{.*}}

// The best may be the model's choice. The other function has what the model
// chooses.
// BEST: {{^ *[0-9]+\.[0-9] +[0-9]+\.[0-9] +[0-9]+\.[0-9]+}}  [[BEST:#attn.schedule<tile = [0-9]+x[0-9]+, order = longest_first>]]{{(, the model's choice)?}}, the best
// BEST-NOT: the best{{$}}
// BEST: tune:
// BEST: func.func @attend
// BEST: schedule = [[BEST]]
// BEST: func.func @other
// BEST: schedule = #attn.schedule<tile = {{.*}}, order = linear>

// A few candidates are those that the model puts first; one is its choice.
// RUN: fovea-run %s --entry=attend --random=1 --tune --candidates=1 | FileCheck %s --check-prefix=ONE
// ONE: attention of line [[#]]: 1 of [[#]] schedules
// ONE-NEXT: predicted
// ONE-NEXT: 1.000  {{.*}}, the model's choice, the best{{$}}
// ONE-NEXT: tune:

// What it finds for another function is added.
// RUN: fovea-run %s --entry=other --random=1 --tune --candidates=2 | FileCheck %s --check-prefix=OTHER
// OTHER: attention of line [[#]]: 2 of [[#]] schedules
// RUN: fovea-compile %s --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: is given
// BOTH-NEXT: is given

// It is of these options: with others, and without the cache, the model chooses.
// RUN: fovea-compile %s --emit=fused --strategy=two-pass --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: env FOVEA_NUM_THREADS=1 fovea-compile %s --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: env FOVEA_CACHE_DIR= fovea-compile %s --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL
// MODEL-NOT: is given
// MODEL: on a host

// RUN: fovea-run %s --entry=attend --random=1 --untune | FileCheck %s --check-prefix=UNTUNE
// UNTUNE: untune: the model chooses schedules again
// RUN: fovea-run %s --entry=attend --random=1 --untune | FileCheck %s --check-prefix=AGAIN
// AGAIN: untune: nothing was kept for this text
// RUN: fovea-compile %s --emit=fused --debug-only=attn-select-schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=MODEL

// RUN: env FOVEA_CACHE_DIR= fovea-run %s --entry=attend --random=1 --tune --candidates=1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: tune: nothing is kept, for there is no folder of compiled code (FOVEA_CACHE_DIR)

// A graph's own schedule is not to choose, and op by op there is none.
// RUN: fovea-run %s --entry=written --random=1 --tune | FileCheck %s --check-prefix=NOTHING
// RUN: fovea-run %s --entry=attend --random=1 --tune --strategy=unfused | FileCheck %s --check-prefix=NOTHING
// NOTHING: tune: the function has no attention whose schedule is to choose
// NOTHING-NEXT: result 0

// Gradients are tuned with the forward pass; the host's model has no times for
// the backward pass.
// RUN: fovea-run %s --entry=attend --random=1 --grad --recompute=always --tune --candidates=2 --check | FileCheck %s --check-prefix=GRADIENT
// GRADIENT: attention of line [[#]]: 2 of [[#]] schedules
// GRADIENT: backward pass of attention of line [[#]]: 2 of [[#]] schedules
// GRADIENT: {{^ *- +[0-9]+\.[0-9] +}}1.000  #attn.schedule<{{.*}}>, the model's choice
// GRADIENT: check: result 3

!t = tensor<1x2x64x16xf32>
!s = tensor<1x2x64x64xf32>
func.func @attend(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %m = attn.mask %s {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi sge, %i, %j : index
    attn.yield %keep : i1
  } : !s
  %p = attn.softmax %m : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}

func.func @other(%q: !t, %k: !t, %v: !t) -> !t {
  %s = attn.scores %q, %k : !t, !t -> !s
  %p = attn.softmax %s : !s -> !s
  %o = attn.values %p, %v : !s, !t -> !t
  return %o : !t
}

func.func @written(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v scale(1.0) {schedule = #attn.schedule<tile = 8x8, order = linear>} : !t, !t, !t -> !t
  return %o : !t
}
