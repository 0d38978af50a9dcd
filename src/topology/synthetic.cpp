// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Translation of synthetic machine descriptions, word by word.
#include "topology/synthetic.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "topology/raw_machine.h"

namespace bosk::topology {
namespace {

constexpr const char* kAccepted =
    "words are NAME:COUNT, outermost first, with NAME one of machine package die node group l3 l2 l1 "
    "core pu, as in \"node:4 core:4 pu:1\"";

enum class Rank : uint8_t { kMachine, kOuter, kL2, kL1, kCore, kPu };

struct Known {
  const char* word;
  const char* hwloc;  // nullptr: machine, which hwloc does not name; "node": made of two words
  Rank rank;          // must not decrease from left to right
  bool repeatable;
};

constexpr Known kKnown[] = {
    {"machine", nullptr, Rank::kMachine, false},
    {"package", "Package", Rank::kOuter, false},
    {"pack", "Package", Rank::kOuter, false},
    {"socket", "Package", Rank::kOuter, false},
    {"die", "Die", Rank::kOuter, false},
    {"node", "node", Rank::kOuter, false},
    {"numa", "node", Rank::kOuter, false},
    {"numanode", "node", Rank::kOuter, false},
    {"group", "Group", Rank::kOuter, true},
    {"l3", "L3Cache", Rank::kOuter, false},
    {"l3cache", "L3Cache", Rank::kOuter, false},
    {"l2", "L2Cache", Rank::kL2, false},
    {"l2cache", "L2Cache", Rank::kL2, false},
    {"l1", "L1Cache", Rank::kL1, false},
    {"l1cache", "L1Cache", Rank::kL1, false},
    {"l1d", "L1Cache", Rank::kL1, false},
    {"l1dcache", "L1Cache", Rank::kL1, false},
    {"core", "Core", Rank::kCore, false},
    {"pu", "PU", Rank::kPu, false},
    {"thread", "PU", Rank::kPu, false},
};

const Known* find_known(const char* word, size_t length) {
  for (const Known& known : kKnown) {
    if (strlen(known.word) == length && strncasecmp(known.word, word, length) == 0) return &known;
  }
  return nullptr;
}

/// Length of the word at `text`; blanks inside brackets belong to it. 0: a bracket is never closed.
size_t word_length(const char* text) {
  int open = 0;
  size_t i = 0;
  for (; text[i] != '\0'; i++) {
    if (text[i] == '(' || text[i] == '[') open++;
    if (text[i] == ')' || text[i] == ']') open--;
    if (open < 0) return 0;
    if (open == 0 && isspace(static_cast<unsigned char>(text[i]))) break;
  }
  return open == 0 ? i : 0;
}

class Translator {
 public:
  Translator(const char* text, Array<char>* out, Error* error)
      : text_(text), out_(out), error_(error) {}

  bool run() {
    out_->size = 0;
    const char* at = text_;
    bool any = false;
    for (;;) {
      while (isspace(static_cast<unsigned char>(*at))) at++;
      if (*at == '\0') break;
      const size_t length = word_length(at);
      if (length == 0) {
        return error_->set("synthetic machine \"%.80s\": brackets do not match at \"%.40s\"", text_,
                           at);
      }
      if (!translate_word(at, static_cast<int>(length))) return false;
      any = true;
      at += length;
    }
    if (!any) return error_->set("the synthetic machine description is empty: %s", kAccepted);
    if (!has_pu_ && !emit("PU:1 ", 5)) return false;
    return emit("", 1);  // the final NUL
  }

 private:
  bool bad(const char* word, int length, const char* what) {
    return error_->set("synthetic machine \"%.80s\": word \"%.*s\" %s: %s", text_,
                       length > 40 ? 40 : length, word, what, kAccepted);
  }

  bool emit(const char* text, size_t length) {
    for (size_t i = 0; i < length; i++) {
      if (!out_->push(text[i])) return error_->set("out of memory in a synthetic description");
    }
    return true;
  }

  bool translate_word(const char* word, int length) {
    if (word[0] == '[') return emit(word, static_cast<size_t>(length)) && emit(" ", 1);
    if (isdigit(static_cast<unsigned char>(word[0]))) return translate_number(word, length);
    int name = 0;
    while (name < length && isalnum(static_cast<unsigned char>(word[name]))) name++;
    const Known* known = find_known(word, static_cast<size_t>(name));
    if (known == nullptr) return bad(word, length, "is not known");
    if (name == length || word[name] != ':') return bad(word, length, "has no \":COUNT\"");
    int digits = name + 1;
    uint64_t count = 0;
    while (digits < length && isdigit(static_cast<unsigned char>(word[digits]))) {
      count = count > kMaxPus ? count : count * 10 + static_cast<uint64_t>(word[digits] - '0');
      digits++;
    }
    const char* attributes = word + digits;
    const int n_attributes = length - digits;
    if (digits == name + 1 || (n_attributes != 0 && attributes[0] != '(')) {
      return bad(word, length, "has a count that is not a number");
    }
    if (!check(known, count, word, length)) return false;
    if (known->hwloc == nullptr) return true;
    return emit_level(*known, count, attributes, n_attributes);
  }

  /// hwloc's shortest spelling: counts only, which hwloc names itself; the last is the PUs.
  bool translate_number(const char* word, int length) {
    uint64_t count = 0;
    int digits = 0;
    while (digits < length && isdigit(static_cast<unsigned char>(word[digits]))) {
      count = count > kMaxPus ? count : count * 10 + static_cast<uint64_t>(word[digits] - '0');
      digits++;
    }
    if (digits != length && word[digits] != '(') return bad(word, length, "is not known");
    if (seen_ != 0) return bad(word, length, "has no name, but others have one");
    if (!multiply(count, word, length)) return false;
    bare_numbers_ = has_pu_ = true;
    return emit(word, static_cast<size_t>(length)) && emit(" ", 1);
  }

  bool multiply(uint64_t count, const char* word, int length) {
    if (count == 0) return bad(word, length, "has a count of 0");
    product_ *= count;  // both factors are at most kMaxPus × 10
    if (product_ > kMaxPus) {
      return error_->set("synthetic machine \"%.80s\": more than %u PUs at word \"%.*s\"", text_,
                         kMaxPus, length > 40 ? 40 : length, word);
    }
    return true;
  }

  bool check(const Known* known, uint64_t count, const char* word, int length) {
    const auto index = static_cast<uint32_t>(known - kKnown);
    if (bare_numbers_) return bad(word, length, "has a name, but others have none");
    if (known->rank == Rank::kMachine && (count != 1 || seen_ != 0)) {
      return bad(word, length, "can only be machine:1, in front");
    }
    if (known->rank < rank_) return bad(word, length, "stands inside something smaller");
    for (uint32_t i = 0; i < sizeof kKnown / sizeof kKnown[0]; i++) {
      const bool same = kKnown[i].hwloc == known->hwloc && ((seen_ >> i) & 1) != 0;
      if (same && !known->repeatable) return bad(word, length, "comes twice");
    }
    if (!multiply(count, word, length)) return false;
    seen_ |= 1u << index;
    rank_ = known->rank;
    has_pu_ = has_pu_ || known->rank == Rank::kPu;
    return true;
  }

  bool emit_level(const Known& known, uint64_t count, const char* attributes, int n_attributes) {
    char head[48];
    const bool is_node = strcmp(known.hwloc, "node") == 0;
    int n = snprintf(head, sizeof head, "%s:%u", is_node ? "Group" : known.hwloc,
                     static_cast<unsigned>(count));
    if (!emit(head, static_cast<size_t>(n))) return false;
    if (is_node) {
      if (!emit(" [NUMANode", 10)) return false;
      if (n_attributes == 0) {
        attributes = "(memory=1073741824)";
        n_attributes = static_cast<int>(strlen(attributes));
      }
    }
    return emit(attributes, static_cast<size_t>(n_attributes)) && emit("] ", is_node ? 2 : 0) &&
           emit(" ", 1);
  }

  const char* text_;
  Array<char>* out_;
  Error* error_;
  uint64_t product_ = 1;
  uint32_t seen_ = 0;  // bit per entry of kKnown
  Rank rank_ = Rank::kMachine;
  bool has_pu_ = false;
  bool bare_numbers_ = false;
};

}  // namespace

bool translate_synthetic(const char* text, Array<char>* out, Error* error) {
  return Translator(text, out, error).run();
}

}  // namespace bosk::topology
