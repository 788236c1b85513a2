// RUN: fovea-opt --attach-gpu-target=target=sm_70 --verify-diagnostics %s

// expected-error@+1 {{attach-gpu-target: target is `sm_70`, expected `sm_80` or `sm_90a`}}
module {}
