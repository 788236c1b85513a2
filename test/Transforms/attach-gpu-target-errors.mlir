// RUN: fovea-opt --attach-gpu-target=target=sm_70 --verify-diagnostics %s

// expected-error@+1 {{attach-gpu-target: target is `sm_70`, expected sm_80, sm_86, sm_89, sm_90a or sm_120}}
module {}
