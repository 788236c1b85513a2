//===- CompiledCode.cpp - Results of a compilation ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledCode.h"

#include "fovea/Support/PhaseTiming.h"

#include "llvm/Support/DataExtractor.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/TargetParser/Host.h"

using namespace fovea;

/// Adds a text and all options that schedules are kept for to a key.
static void addInput(CacheKey &key, llvm::StringRef text,
                     const CompileOptions &options) {
  HostProcessor processor = getHostProcessor(options.arch, options.cpu);
  key.add(text).add(getStrategyChoices().getName(options.strategy));
  key.add(processor.triple).add(processor.cpu).add(processor.features);
  key.add(options.optLevel)
      .add(options.deterministic)
      .add(options.exactFunctions)
      .add(options.typicalLength)
      .add(options.typicalRows)
      .add(options.tileRows);
  // For a GPU, the numbers are the typical ones that code is made for, not
  // those of the GPU here.
  key.add(options.gpu ? options.gpu->name.str() : identifyHost(options.arch));
}

CacheKey fovea::getCodeKey(llvm::StringRef text,
                           const CompileOptions &options) {
  CacheKey key("code");
  key.add(getBuildIdentity());
  addInput(key, text, options);
  key.add(options.copiesOperands);
  if (options.schedules)
    for (const std::string &schedule : *options.schedules)
      key.add(schedule);
  return key;
}

std::optional<CompiledCode> fovea::lookUpCode(const CacheKey &key) {
  // Decisions about code that is kept were made when it was compiled.
  if (llvm::DebugFlag)
    return std::nullopt;
  auto entry = DiskCache::get().lookup(key);
  if (!entry)
    return std::nullopt;
  return deserialize(entry->getBuffer());
}

llvm::Expected<Assembly> fovea::assembleKernels(const DeviceCode &code,
                                                llvm::StringRef chip,
                                                mlir::TimingScope *timing) {
  mlir::TimingScope phase = timePhase(timing, "Assembly of the kernels");
  return assemble(code.ptx, {chip.str()}, &DiskCache::get());
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// Returns the name of the schedules that were kept, for all devices together:
/// what device it is need not be known where nothing was.
static CacheKey getSchedulesKey(llvm::StringRef text,
                                const CompileOptions &options) {
  CacheKey key("schedules");
  key.add(getSourceIdentity());
  addInput(key, text, options);
  return key;
}

/// Returns the name of the machine whose times were measured; empty if there is
/// no such GPU.
static std::string getDeviceName(const CompileOptions &options) {
  if (!options.gpu)
    return llvm::sys::getHostCPUName().str();
  auto driver = cuda::Driver::get();
  if (!driver) {
    llvm::consumeError(driver.takeError());
    return "";
  }
  const cuda::DeviceInfo &info = driver->getDevices().front();
  return llvm::formatv("{0}, {1} multiprocessors, {2} kHz, {3} bytes",
                       info.name, info.numMultiprocessors, info.clockKHz,
                       info.memoryBytes);
}

/// Returns the lists of schedules by the names of machines.
static llvm::json::Object readSchedules(const CacheKey &key) {
  auto entry = DiskCache::get().lookup(key);
  if (!entry)
    return {};
  auto parsed = llvm::json::parse(entry->getBuffer());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {};
  }
  llvm::json::Object *lists = parsed->getAsObject();
  return lists ? std::move(*lists) : llvm::json::Object();
}

std::optional<ScheduleList>
fovea::lookUpSchedules(llvm::StringRef text, const CompileOptions &options) {
  if (options.schedules)
    return options.schedules;
  llvm::json::Object lists = readSchedules(getSchedulesKey(text, options));
  if (lists.empty())
    return std::nullopt;
  const llvm::json::Array *list = lists.getArray(getDeviceName(options));
  if (!list)
    return std::nullopt;
  ScheduleList schedules;
  for (const llvm::json::Value &schedule : *list)
    schedules.push_back(schedule.getAsString().value_or("").str());
  return schedules;
}

void fovea::keepSchedules(llvm::StringRef text, const CompileOptions &options,
                          const ScheduleList &schedules) {
  CacheKey key = getSchedulesKey(text, options);
  llvm::json::Object lists = readSchedules(key);
  lists[getDeviceName(options)] = llvm::json::Array(schedules);
  DiskCache::get().store(
      key, llvm::formatv("{0}", llvm::json::Value(std::move(lists))).str());
}

bool fovea::forgetSchedules(llvm::StringRef text,
                            const CompileOptions &options) {
  return DiskCache::get().remove(getSchedulesKey(text, options));
}

//===----------------------------------------------------------------------===//
// Code as bytes
//===----------------------------------------------------------------------===//

namespace {

/// Numbers have 8 bytes; texts and lists begin with their length.
class Writer {
public:
  explicit Writer(std::string &bytes)
      : stream(bytes), writer(stream, llvm::endianness::little) {}

  void write(int64_t number) { writer.write(number); }
  void write(llvm::StringRef text) {
    write(int64_t(text.size()));
    stream << text;
  }
  template <typename List, typename Function>
  void writeList(const List &list, Function &&writeElement) {
    write(int64_t(list.size()));
    for (const auto &element : list)
      writeElement(element);
  }
  template <typename List>
  void writeTexts(const List &list) {
    writeList(list, [&](const std::string &text) { write(text); });
  }
  void write(const ValueType &type) {
    write(type.name);
    write(int64_t(type.type));
    write(int64_t(type.scalar));
    write(int64_t(type.writable));
    writeList(type.shape, [&](int64_t size) { write(size); });
  }

private:
  llvm::raw_string_ostream stream;
  llvm::support::endian::Writer writer;
};

/// Reads after the end, or after anything wrong, return empty values.
class Reader {
public:
  explicit Reader(llvm::StringRef bytes)
      : data(bytes, /*IsLittleEndian=*/true, /*AddressSize=*/8), cursor(0) {}

  int64_t readNumber() { return int64_t(data.getU64(cursor)); }
  llvm::StringRef readText() {
    uint64_t size = data.getU64(cursor);
    return data.getBytes(cursor, size);
  }
  template <typename Function>
  void readList(Function &&readElement) {
    for (int64_t count = readNumber(); cursor && count > 0; --count)
      readElement();
  }
  template <typename List>
  void readTexts(List &list) {
    readList([&] { list.push_back(readText().str()); });
  }
  ValueType readType() {
    ValueType type;
    type.name = readText().str();
    int64_t number = readNumber();
    isWrong |= number < 0 || number > int64_t(DType::I64);
    type.type = DType(number);
    type.scalar = readNumber();
    type.writable = readNumber();
    readList([&] { type.shape.push_back(readNumber()); });
    return type;
  }

  /// Returns true if all reads were as expected and no bytes are left. To be
  /// called once.
  bool finish() {
    bool isAtEnd = data.eof(cursor);
    bool failed = llvm::errorToBool(cursor.takeError());
    return isAtEnd && !failed && !isWrong;
  }

private:
  llvm::DataExtractor data;
  llvm::DataExtractor::Cursor cursor;
  bool isWrong = false;
};

} // namespace

static void writePlace(Writer &writer, SizePlace place) {
  writer.write(int64_t(place.operand));
  writer.write(int64_t(place.dim));
  writer.write(place.more);
}

static SizePlace readPlace(Reader &reader) {
  auto operand = unsigned(reader.readNumber());
  auto dim = unsigned(reader.readNumber());
  return {operand, dim, reader.readNumber()};
}

static void writePlaceIfAny(Writer &writer, std::optional<SizePlace> place) {
  writer.write(int64_t(place.has_value()));
  writePlace(writer, place.value_or(SizePlace()));
}

static std::optional<SizePlace> readPlaceIfAny(Reader &reader) {
  bool isThere = reader.readNumber() != 0;
  SizePlace place = readPlace(reader);
  return isThere ? std::optional(place) : std::nullopt;
}

static void writeCalls(Writer &writer, const TileCalls &calls) {
  writePlaceIfAny(writer, calls.batch);
  writePlace(writer, calls.queries);
  writePlaceIfAny(writer, calls.keys);
  writer.write(calls.tile);
  writer.write(calls.mostTiles);
}

static void readCalls(Reader &reader, TileCalls &calls) {
  calls.batch = readPlaceIfAny(reader);
  calls.queries = readPlace(reader);
  calls.keys = readPlaceIfAny(reader);
  calls.tile = reader.readNumber();
  calls.mostTiles = reader.readNumber();
}

std::string fovea::serialize(const CompiledCode &code) {
  std::string bytes;
  Writer writer(bytes);
  writer.writeList(code.functions, [&](const CompiledCode::Function &function) {
    const Signature &signature = function.signature;
    auto writeType = [&](const ValueType &type) { writer.write(type); };
    writer.write(signature.name);
    writer.writeList(signature.operands, writeType);
    writer.writeList(signature.results, writeType);
    writer.write(signature.obstacle);
    writer.writeTexts(function.messages);
    const OtherSizes &sizes = function.otherSizes;
    writer.writeList(sizes.shortLengths.places,
                     [&](SizePlace place) { writePlace(writer, place); });
    writePlaceIfAny(writer, sizes.shortLengths.sequences);
    writer.write(int64_t(sizes.shortLengths.steps));
    for (const FewRows &rows : sizes.fewRows) {
      writeCalls(writer, rows);
      writer.write(rows.mostQueries);
    }
    for (const FewTiles &tiles : sizes.fewTiles)
      writeCalls(writer, tiles);
    writer.write(int64_t(function.testsOperands));
  });
  writer.write(code.object->getBuffer());
  writer.write(code.device.ptx);
  writer.writeTexts(code.device.kernels);
  writer.writeTexts(code.remarks);
  return bytes;
}

std::optional<CompiledCode> fovea::deserialize(llvm::StringRef bytes) {
  CompiledCode code;
  Reader reader(bytes);
  reader.readList([&] {
    CompiledCode::Function &function = code.functions.emplace_back();
    Signature &signature = function.signature;
    signature.name = reader.readText().str();
    reader.readList([&] { signature.operands.push_back(reader.readType()); });
    reader.readList([&] { signature.results.push_back(reader.readType()); });
    signature.obstacle = reader.readText().str();
    reader.readTexts(function.messages);
    ShortLengths &lengths = function.otherSizes.shortLengths;
    reader.readList([&] { lengths.places.push_back(readPlace(reader)); });
    lengths.sequences = readPlaceIfAny(reader);
    lengths.steps = uint64_t(reader.readNumber());
    for (FewRows &rows : function.otherSizes.fewRows) {
      readCalls(reader, rows);
      rows.mostQueries = reader.readNumber();
    }
    for (FewTiles &tiles : function.otherSizes.fewTiles)
      readCalls(reader, tiles);
    function.testsOperands = reader.readNumber() != 0;
  });
  code.object =
      llvm::MemoryBuffer::getMemBufferCopy(reader.readText(), "fovea");
  code.device.ptx = reader.readText().str();
  reader.readTexts(code.device.kernels);
  reader.readTexts(code.remarks);
  if (!reader.finish())
    return std::nullopt;
  return code;
}
