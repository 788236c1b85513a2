//===- FakeAmx.cpp - AMX tiles on a processor without them ----------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program that preloads this library gets the permission to use AMX tiles,
// and runs their instructions: the processor refuses each, and the signal's
// handler computes what Intel's manual says. An instruction that a processor
// with tiles would refuse ends the program.
//
// Where the processor has tiles, and the system grants them, it runs the
// instructions itself: it would not refuse that which gives tiles their shapes.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

/// What a program asks the system for, and the component of its state that it
/// asks for.
constexpr int kRequestPermission = 0x1023;
constexpr unsigned long kTileData = 18;

/// The tiles of a thread, and their shapes.
struct State {
  bool isConfigured;
  int rows[kTiles], rowBytes[kTiles];
  alignas(64) uint8_t data[kTiles][kRows][kRowBytes];
};

/// An instruction with a three-byte VEX prefix of map 0F38.
struct Instruction {
  int prefix; ///< none, 66, F3 or F2
  int opcode;
  int first, second, third; ///< ModRM.reg, ModRM.rm and VEX.vvvv
  bool isMemory;
  uint8_t *base;  ///< of an operand in memory, without the index
  int64_t stride; ///< the scaled index
  int length;
};

} // namespace

static thread_local State state;

[[noreturn]] static void fail(const char *reason) {
  std::fprintf(stderr, "fake AMX: %s\n", reason);
  std::abort();
}

/// Returns the general register of an instruction's encoding.
static int64_t getRegister(const ucontext_t *context, int number) {
  static constexpr int kNumbers[] = {
      REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return context->uc_mcontext.gregs[kNumbers[number]];
}

template <typename T>
static T read(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Returns false if the code is no instruction on tiles.
static bool decode(const uint8_t *code, const ucontext_t *context,
                   Instruction &result) {
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0)
    return false;
  // The prefix inverts these bits.
  int regHigh = code[1] & 0x80 ? 0 : 8, indexHigh = code[1] & 0x40 ? 0 : 8,
      baseHigh = code[1] & 0x20 ? 0 : 8;
  result.third = ~(code[2] >> 3) & 15;
  result.prefix = code[2] & 3;
  result.opcode = code[3];
  if (result.opcode != 0x49 && result.opcode != 0x4B && result.opcode != 0x5C)
    return false;
  int mode = code[4] >> 6, rm = code[4] & 7;
  result.first = (code[4] >> 3 & 7) + regHigh;
  result.second = rm + baseHigh;
  result.isMemory = mode != 3;
  result.length = 5;
  if (!result.isMemory)
    return true;

  const uint8_t *next = code + 5;
  int64_t base = 0;
  bool hasBase = true;
  result.stride = 0;
  if (rm == 4) {
    int scale = *next >> 6, index = (*next >> 3 & 7) + indexHigh;
    int low = *next & 7;
    ++next;
    if (index != 4)
      result.stride = getRegister(context, index) << scale;
    hasBase = mode != 0 || low != 5;
    if (hasBase)
      base = getRegister(context, low + baseHigh);
    else
      base = read<int32_t>(next);
  } else if (mode == 0 && rm == 5) {
    hasBase = false;
    base = reinterpret_cast<int64_t>(next + 4) + read<int32_t>(next);
  } else {
    base = getRegister(context, result.second);
  }
  if (mode == 1) {
    base += static_cast<int8_t>(*next);
    next += 1;
  } else if (mode == 2) {
    base += read<int32_t>(next);
    next += 4;
  } else if (!hasBase) {
    next += 4;
  }
  result.base = reinterpret_cast<uint8_t *>(base);
  result.length = static_cast<int>(next - code);
  return true;
}

static void loadConfiguration(const uint8_t *from) {
  if (from[0] != 1)
    fail("a configuration's palette is not 1");
  state.isConfigured = true;
  for (int tile = 0; tile < kTiles; ++tile) {
    state.rows[tile] = from[48 + tile];
    state.rowBytes[tile] = read<uint16_t>(from + 16 + 2 * tile);
    if (state.rows[tile] > kRows || state.rowBytes[tile] > kRowBytes ||
        !state.rows[tile] != !state.rowBytes[tile])
      fail("a configuration has a tile of a wrong shape");
  }
  std::memset(state.data, 0, sizeof(state.data));
}

static void checkTile(int tile) {
  if (!state.isConfigured || tile >= kTiles || !state.rows[tile])
    fail("a tile is used that has no shape");
}

static float widen(uint16_t number) {
  uint32_t bits = static_cast<uint32_t>(number) << 16;
  return read<float>(reinterpret_cast<const uint8_t *>(&bits));
}

/// Adds the products of pairs; even and odd numbers have sums of their own.
static void multiply(int sum, int left, int right) {
  for (int tile : {sum, left, right})
    checkTile(tile);
  int depth = state.rowBytes[left] / 4, columns = state.rowBytes[sum] / 4;
  if (state.rows[left] != state.rows[sum] || state.rows[right] != depth ||
      state.rowBytes[right] != state.rowBytes[sum] || sum == left ||
      sum == right || left == right)
    fail("tiles of a product do not fit");
  for (int row = 0; row < state.rows[sum]; ++row)
    for (int column = 0; column < columns; ++column) {
      float sums[2] = {0, 0};
      for (int k = 0; k < depth; ++k)
        for (int odd : {0, 1}) {
          auto a = read<uint16_t>(&state.data[left][row][4 * k + 2 * odd]),
               b = read<uint16_t>(&state.data[right][k][4 * column + 2 * odd]);
          sums[odd] = __builtin_fmaf(widen(a), widen(b), sums[odd]);
        }
      uint8_t *place = &state.data[sum][row][4 * column];
      float result = read<float>(place) + (sums[0] + sums[1]);
      std::memcpy(place, &result, sizeof(result));
    }
}

static void move(const Instruction &instruction, bool isLoad) {
  int tile = instruction.first;
  checkTile(tile);
  if (isLoad)
    std::memset(state.data[tile], 0, sizeof(state.data[tile]));
  for (int row = 0; row < state.rows[tile]; ++row) {
    uint8_t *memory = instruction.base + row * instruction.stride;
    uint8_t *data = state.data[tile][row];
    std::memcpy(isLoad ? data : memory, isLoad ? memory : data,
                state.rowBytes[tile]);
  }
}

/// Returns false if the instruction is none that this file knows.
static bool execute(const Instruction &instruction) {
  enum { None, OperandSize, Repeat, RepeatNot };
  switch (instruction.opcode) {
  case 0x49:
    if (instruction.prefix == None && instruction.isMemory)
      loadConfiguration(instruction.base);
    else if (instruction.prefix == None)
      state.isConfigured = false;
    else if (instruction.prefix == RepeatNot && !instruction.isMemory)
      checkTile(instruction.first),
          std::memset(state.data[instruction.first], 0,
                      sizeof(state.data[instruction.first]));
    else
      return false;
    return true;
  case 0x4B:
    if (!instruction.isMemory || instruction.prefix == None)
      return false;
    move(instruction, /*isLoad=*/instruction.prefix != Repeat);
    return true;
  case 0x5C:
    if (instruction.isMemory || instruction.prefix != Repeat)
      return false;
    multiply(instruction.first, instruction.second, instruction.third);
    return true;
  default:
    return false;
  }
}

static void handle(int, siginfo_t *, void *argument) {
  auto *context = static_cast<ucontext_t *>(argument);
  greg_t &place = context->uc_mcontext.gregs[REG_RIP];
  Instruction instruction;
  if (!decode(reinterpret_cast<const uint8_t *>(place), context, instruction) ||
      !execute(instruction))
    fail("an unknown instruction");
  place += instruction.length;
}

using SetAction = int (*)(int, const struct sigaction *, struct sigaction *);

static SetAction getSetAction() {
  static auto set = reinterpret_cast<SetAction>(dlsym(RTLD_NEXT, "sigaction"));
  return set;
}

extern "C" {

/// Keeps the handler: tools print a stack for such a signal.
EXPORT int sigaction(int number, const struct sigaction *next,
                     struct sigaction *last) noexcept {
  return getSetAction()(number, number == SIGILL ? nullptr : next, last);
}

/// Grants what the library is for.
EXPORT int arch_prctl(int code, unsigned long argument) noexcept {
  return code == kRequestPermission && argument == kTileData ? 0 : -1;
}

} // extern "C"

__attribute__((constructor)) static void install() {
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0)
    return;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  getSetAction()(SIGILL, &action, nullptr);
}
