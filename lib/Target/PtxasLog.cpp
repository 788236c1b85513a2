//===- PtxasLog.cpp - Parsing of ptxas's output ---------------------------===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fovea/Target/Ptxas.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace fovea;

/// Returns the text between the first pair of quotes after `after`; empty if
/// there is none.
static llvm::StringRef getQuoted(llvm::StringRef text, llvm::StringRef after) {
  size_t at = text.find(after);
  if (at == llvm::StringRef::npos)
    return "";
  llvm::StringRef rest = text.drop_front(at + after.size());
  size_t end = rest.find('\'');
  return end == llvm::StringRef::npos ? "" : rest.take_front(end);
}

/// Reads items such as `8 bytes spill stores`, `used 1 barriers`.
static void parseItems(llvm::StringRef line, KernelResources &kernel) {
  llvm::SmallVector<llvm::StringRef, 8> items;
  line.split(items, ',');
  for (llvm::StringRef item : items) {
    item = item.trim();
    if (!item.consume_front("Used "))
      item.consume_front("used ");
    int number;
    if (item.consumeInteger(10, number))
      continue;
    item = item.trim();
    if (item == "registers")
      kernel.registers = number;
    else if (item == "barriers")
      kernel.barriers = number;
    else if (item == "bytes stack frame")
      kernel.stackBytes = number;
    else if (item == "bytes spill stores")
      kernel.spillStoreBytes = number;
    else if (item == "bytes spill loads")
      kernel.spillLoadBytes = number;
    else if (item == "bytes smem")
      kernel.staticSharedBytes = number;
    else if (item == "bytes cumulative stack size")
      kernel.stackBytes = std::max(kernel.stackBytes, number);
  }
}

bool PtxasDiagnostic::isSlowdown() const {
  llvm::StringRef digits(code);
  int number;
  if (!digits.consume_front("C") || digits.getAsInteger(10, number))
    return false;
  return number == 7507 || number == 7508 || (number >= 7510 && number <= 7519);
}

PtxasReport fovea::parsePtxasLog(llvm::StringRef log) {
  PtxasReport report;
  // The kernel whose properties the lines that follow are; null for a function
  // that is no kernel.
  KernelResources *current = nullptr;
  auto select = [&](llvm::StringRef name) {
    current = llvm::find_if(report.kernels, [&](const KernelResources &kernel) {
      return kernel.name == name;
    });
    if (current == report.kernels.end())
      current = nullptr;
  };
  llvm::SmallVector<llvm::StringRef> lines;
  log.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    // Lines are `ptxas info    : text`, `ptxas file.ptx, line 8; error   :
    // text`, and continuations.
    auto [head, text] = line.split(": ");
    head = head.rtrim();
    text = text.trim();
    if (!line.starts_with("ptxas") || head.size() == line.size()) {
      if (current)
        parseItems(line, *current);
      continue;
    }
    llvm::StringRef severity = head.substr(head.find_last_of(" ") + 1);
    if (severity == "info") {
      if (llvm::StringRef name = getQuoted(text, "Compiling entry function '");
          !name.empty()) {
        report.kernels.emplace_back().name = name.str();
        current = &report.kernels.back();
        continue;
      }
      llvm::StringRef properties = text;
      if (properties.consume_front("Function properties for ")) {
        select(properties);
        continue;
      }
      if (text.starts_with("Used ")) {
        // The properties are those of the kernel compiled last, whatever
        // functions it calls.
        if (!report.kernels.empty())
          parseItems(text, report.kernels.back());
        continue;
      }
      if (!text.starts_with("("))
        continue;
    }
    PtxasDiagnostic &diagnostic = report.diagnostics.emplace_back();
    diagnostic.severity = severity == "info" ? PtxasDiagnostic::Severity::Info
                          : severity == "warning"
                              ? PtxasDiagnostic::Severity::Warning
                              : PtxasDiagnostic::Severity::Error;
    if (text.starts_with("(C")) {
      auto [code, rest] = text.drop_front().split(')');
      diagnostic.code = code.str();
      text = rest.trim();
    }
    diagnostic.kernel = getQuoted(text, "function '").str();
    diagnostic.message = text.str();
  }
  return report;
}

llvm::SmallVector<std::string, 0>
fovea::getSlowdowns(const Assembly &assembly) {
  llvm::SmallVector<std::string, 0> remarks;
  llvm::SmallVector<llvm::StringRef> kernels;
  for (const PtxasDiagnostic &diagnostic : assembly.report.diagnostics) {
    if (!diagnostic.isSlowdown() ||
        llvm::is_contained(kernels, diagnostic.kernel))
      continue;
    kernels.push_back(diagnostic.kernel);
    remarks.push_back((diagnostic.kernel.empty()
                           ? "kernels are"
                           : "kernel '" + diagnostic.kernel + "' is") +
                      " right, but slower than written: " + assembly.assembler +
                      ": " + diagnostic.code + ": " + diagnostic.message);
  }
  return remarks;
}
