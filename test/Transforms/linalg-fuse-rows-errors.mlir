// RUN: not fovea-opt --linalg-fuse-rows=scope=all %s 2>&1 | FileCheck %s

// CHECK: error: linalg-fuse-rows: scope is `all`, expected `graph` or `op`
func.func @empty() {
  return
}
