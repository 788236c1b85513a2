//===- GpuScheduleModel.h - Schedules of attention on a GPU -----*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_ANALYSIS_GPUSCHEDULEMODEL_H
#define FOVEA_LIB_ANALYSIS_GPUSCHEDULEMODEL_H

#include "fovea/Analysis/ScheduleModel.h"

namespace fovea {

/// Estimated seconds of one attention under `schedule`, which has warps.
double predictGpuSeconds(const AttentionShape &shape, attn::TargetAttr target,
                         attn::ScheduleAttr schedule);

/// The schedule with the least predicted time whose tile fits a block of the
/// GPU; null if none does.
attn::ScheduleAttr selectGpuSchedule(attn::AttentionOp op,
                                     attn::TargetAttr target);
attn::ScheduleAttr selectGpuSchedule(attn::AttentionBackwardOp op,
                                     attn::TargetAttr target);

} // namespace fovea

#endif // FOVEA_LIB_ANALYSIS_GPUSCHEDULEMODEL_H
