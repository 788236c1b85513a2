//===- CompiledCode.cpp - Results of a compilation ------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledCode.h"

#include "llvm/Support/DataExtractor.h"
#include "llvm/Support/EndianStream.h"

using namespace fovea;

CacheKey fovea::getCodeKey(llvm::StringRef text,
                           const CompileOptions &options) {
  HostProcessor processor = getHostProcessor(options.arch, options.cpu);
  CacheKey key("code");
  key.add(getBuildIdentity())
      .add(text)
      .add(getStrategyChoices().getName(options.strategy));
  key.add(processor.triple).add(processor.cpu).add(processor.features);
  key.add(options.optLevel)
      .add(options.deterministic)
      .add(options.exactFunctions);
  // For a GPU, the numbers are the typical ones that code is made for, not
  // those of the GPU here.
  key.add(options.gpu ? options.gpu->name.str() : identifyHost(options.arch));
  return key;
}

std::optional<CompiledCode> fovea::lookUpCode(const CacheKey &key) {
  auto entry = DiskCache::get().lookup(key);
  if (!entry)
    return std::nullopt;
  return deserialize(entry->getBuffer());
}

llvm::Expected<Assembly> fovea::assembleKernels(const DeviceCode &code,
                                                llvm::StringRef chip) {
  return assemble(code.ptx, {chip.str()}, &DiskCache::get());
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
