// RUN: fovea-opt --pass-pipeline='builtin.module(gpu.module(canonicalize-kernels))' --split-input-file %s \
// RUN:   | FileCheck %s

gpu.module @kernels {
  // Ops in loops and branches, and what comes of them.
  // CHECK-LABEL: gpu.func @nested(
  // CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8xi32>, %[[N:[a-z0-9]+]]: index, %[[C:[a-z0-9]+]]: i1
  // CHECK:         scf.for %[[I:[a-z0-9]+]]
  // CHECK:           scf.if %[[C]] {
  // CHECK-NEXT:        %[[THREE:.*]] = arith.constant 3 : i32
  // CHECK-NEXT:        memref.store %[[THREE]], %[[X]][%[[I]]]
  // CHECK-NEXT:      }
  gpu.func @nested(%x: memref<8xi32>, %n: index, %c: i1) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %n step %one {
      scf.if %c {
        %a = arith.constant 1 : i32
        %b = arith.constant 2 : i32
        %s = arith.addi %a, %b : i32
        %j = arith.addi %i, %zero : index
        memref.store %s, %x[%j] : memref<8xi32>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // Loops and branches, by what is known of the ops in front.
  // CHECK-LABEL: gpu.func @regions(
  // CHECK-NOT:     scf.
  // CHECK-COUNT-2: memref.store
  // CHECK-NOT:     memref.store
  gpu.func @regions(%x: memref<8xi32>, %v: i32) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.addi %one, %one : index
    %later = arith.cmpi slt, %zero, %two : index
    scf.if %later {
      memref.store %v, %x[%two] : memref<8xi32>
    } else {
      memref.store %v, %x[%zero] : memref<8xi32>
    }
    scf.for %i = %one to %two step %one {
      memref.store %v, %x[%i] : memref<8xi32>
    }
    scf.for %i = %two to %one step %one {
      memref.store %v, %x[%i] : memref<8xi32>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // What a loop carries stays, even if it is the same twice, or never changes.
  // CHECK-LABEL: gpu.func @carried(
  // CHECK:         scf.for {{.*}} iter_args({{.*}}, {{.*}}, {{.*}}) -> (i32, i32, i32)
  gpu.func @carried(%x: memref<8xi32>, %n: index, %v: i32) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %r:3 = scf.for %i = %zero to %n step %one
        iter_args(%a = %v, %b = %v, %c = %v) -> (i32, i32, i32) {
      %s = arith.addi %a, %c : i32
      %t = arith.addi %b, %c : i32
      scf.yield %s, %t, %c : i32, i32, i32
    }
    memref.store %r#0, %x[%zero] : memref<8xi32>
    memref.store %r#1, %x[%one] : memref<8xi32>
    gpu.return
  }
}

// -----

// Functions of the host are not looked at.
// CHECK-LABEL: func.func @host(
// CHECK:         arith.addi
func.func @host(%i: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %i, %zero : i32
  return %sum : i32
}

gpu.module @kernels {
}
