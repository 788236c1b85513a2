//===- Checks.cpp - Checks that instrumented code calls -------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Runtime/HostRuntime.h"

#include <cstdio>

using fovea::runtime::fail;

/// The numbers come last, so that a long file name does not push them out:
/// `site` is cut at the front.
template <typename... Numbers>
[[noreturn]] static void failAt(const char *site, const char *format,
                                Numbers... numbers) {
  char what[160];
  std::snprintf(what, sizeof(what), format, static_cast<long long>(numbers)...);
  size_t length = 0, room = 255;
  for (const char *c = what; *c; ++c)
    --room;
  for (const char *c = site; *c; ++c)
    ++length;
  char message[256];
  std::snprintf(message, sizeof(message), "%s%s",
                length > room ? site + (length - room) : site, what);
  fail(message);
}

void fovea_check_index(const char *site, int64_t index, int64_t size,
                       int64_t dim) {
  if (index >= 0 && index < size)
    return;
  failAt(site,
         " is out of bounds: index %lld of dimension %lld, whose size is %lld",
         index, dim, size);
}

void fovea_check_divisor(const char *site, int64_t dividend, int64_t divisor,
                         int64_t width) {
  if (divisor == 0)
    failAt(site, " divides %lld by 0", dividend);
  // With one bit, -1 by -1 is -1 like any other number.
  if (width > 1 && divisor == -1 &&
      dividend == -(int64_t(1) << (width - 2)) * 2)
    failAt(site, " divides %lld by -1, which overflows", dividend);
}
