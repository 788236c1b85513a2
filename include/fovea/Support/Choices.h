//===- Choices.h - Enumerations that users choose from ----------*- C++ -*-===//
//
// Part of Fovea, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_SUPPORT_CHOICES_H
#define FOVEA_SUPPORT_CHOICES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace fovea {

/// A value of an enumeration, with its name in options and in the APIs.
template <typename T>
struct Choice {
  T value;
  llvm::StringLiteral name;
  llvm::StringLiteral summary;
};

/// All values of an enumeration, in the order in which they are listed. A
/// modifier of options of the command line, to which it adds the values.
template <typename T>
class Choices {
public:
  /// `noun` names the enumeration in errors.
  Choices(llvm::StringLiteral noun, llvm::ArrayRef<Choice<T>> all)
      : noun(noun), all(all) {}

  /// Returns the value called `name`, or none.
  std::optional<T> find(llvm::StringRef name) const {
    for (const Choice<T> &choice : all)
      if (choice.name == name)
        return choice.value;
    return std::nullopt;
  }

  /// Returns the value called `name`, or an error that lists the names.
  llvm::Expected<T> parse(llvm::StringRef name) const {
    if (std::optional<T> value = find(name))
      return *value;
    return llvm::createStringError("unknown " + noun + " '" + name +
                                   "'; expected " + listNames());
  }

  llvm::StringRef getName(T value) const {
    return llvm::find_if(
               all,
               [&](const Choice<T> &choice) { return choice.value == value; })
        ->name;
  }

  /// Returns the names, and `more`, as a list for people: `a, b or c`.
  std::string listNames(llvm::ArrayRef<llvm::StringRef> more = {}) const {
    llvm::SmallVector<llvm::StringRef> names;
    for (const Choice<T> &choice : all)
      names.push_back(choice.name);
    llvm::append_range(names, more);
    llvm::StringRef last = names.pop_back_val();
    return llvm::join(names, ", ") + " or " + last.str();
  }

  /// Returns the names with their summaries, for the help of an option.
  std::string describe() const {
    std::string text;
    for (auto [index, choice] : llvm::enumerate(all))
      text += ((index ? ", " : "") + choice.name + " (" + choice.summary + ")")
                  .str();
    return text;
  }

  template <typename Option>
  void apply(Option &option) const {
    for (const Choice<T> &choice : all)
      option.getParser().addLiteralOption(choice.name, choice.value,
                                          choice.summary);
  }

  const Choice<T> *begin() const { return all.begin(); }
  const Choice<T> *end() const { return all.end(); }

private:
  llvm::StringLiteral noun;
  llvm::ArrayRef<Choice<T>> all;
};

} // namespace fovea

#endif // FOVEA_SUPPORT_CHOICES_H
