// RUN: not fovea-opt %s --attn-pack-groups=rows=-1 2>&1 | FileCheck %s

// CHECK: error: attn-pack-groups: rows must be at least 1, or 0 for the target's, but are -1
module {}
