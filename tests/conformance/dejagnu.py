# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the directives that a test of GCC's carries in comments: `{ dg-NAME WORDS... }`, in the syntax
of Tcl, with target selectors. What the selectors name is answered by machine.py."""

import re
from dataclasses import dataclass, field
from typing import Callable

# A line is one directive at most, up to the last closing brace with a blank before it.
DIRECTIVE = re.compile(r"\{[ \t]+dg-([-a-z]+)[ \t]+(.*)[ \t]+\}")
BARE_DIRECTIVE = re.compile(r"\{[ \t]+dg-([-a-z]+)[ \t]+\}")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
OPERATORS = ("&&", "||", "!")


class BadDirective(Exception):
    """A directive that is no list in Tcl's syntax."""


def braced(text: str, start: int) -> tuple:
    """The text between the brace at `start` and its partner, and the position behind that."""
    depth, position = 0, start
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == "{":
            depth += 1
        elif text[position] == "}":
            depth -= 1
            if depth == 0:
                return text[start + 1:position], position + 1
        position += 1
    raise BadDirective("a brace is open: " + text[start:])


def unescaped(text: str, start: int, ends: Callable) -> tuple:
    """The word from `start` up to where `ends(character)`, with backslashes taken as Tcl does."""
    word, position = "", start
    while position < len(text) and not ends(text[position]):
        if text[position] == "\\" and position + 1 < len(text):
            position += 1
            word += ESCAPES.get(text[position], text[position])
        else:
            word += text[position]
        position += 1
    return word, position


def words_of(text: str) -> list:
    """The words of a Tcl list. Variables and commands are left as they are written."""
    words, position = [], 0
    while position < len(text):
        if text[position].isspace():
            position += 1
        elif text[position] == "{":
            word, position = braced(text, position)
            words.append(word)
        elif text[position] == '"':
            word, position = unescaped(text, position + 1, lambda c: c == '"')
            if position >= len(text):
                raise BadDirective("a quotation mark is open: " + text)
            words.append(word)
            position += 1
        else:
            word, position = unescaped(text, position, str.isspace)
            words.append(word)
    return words


def selected(expression: str, holds: Callable) -> bool:
    """A selector, such as `x86_64-*-* i?86-*-*` (one of them) or `{ c++ && { ! lto } }`."""
    words = words_of(expression)
    if len(words) == 1:
        return selected(words[0], holds) if words[0] != expression.strip() else holds(words[0])
    if not any(word in OPERATORS for word in words):
        return any(selected(word, holds) for word in words)
    return any_of(words, holds)


def any_of(words: list, holds: Callable) -> bool:
    """Words with operators between them, `!` before `&&` before `||`."""
    alternatives, current = [], []
    for word in words:
        if word == "||":
            alternatives.append(current)
            current = []
        else:
            current.append(word)
    return any(all_of(alternative, holds) for alternative in alternatives + [current])


def all_of(words: list, holds: Callable) -> bool:
    result, negated = True, False
    for word in words:
        if word == "!":
            negated = not negated
        elif word != "&&":
            result = result and selected(word, holds) != negated
            negated = False
    return result


def applies(selector: str, holds: Callable) -> bool:
    """A directive's last word: `target EXPRESSION`, `xfail EXPRESSION` or both; xfail selects
    nothing: what is expected to fail is compared like anything else."""
    words = words_of(selector)
    if "target" not in words:
        return True
    start = words.index("target") + 1
    end = words.index("xfail") if "xfail" in words[start:] else len(words)
    expression = words[start:end]
    return selected(" ".join("{" + word + "}" for word in expression), holds)


@dataclass
class Directives:
    """What the header of one test asks for, with the selectors already answered."""
    action: str = "run"  # run, link, compile, preprocess, assemble
    skipped: str = ""  # why it is not for this machine
    options: list = None  # dg-options; None: the folder's
    more_options: list = field(default_factory=list)
    sources: list = field(default_factory=list)
    environment: dict = field(default_factory=dict)
    should_fail: bool = False
    output: str = ""  # regular expression
    seconds: float = None
    time_factor: float = 1.0


class Reader:
    """Collects the directives of one file. `holds(name)` answers the names in selectors,
    `flags` are those of the folder, which dg-skip-if looks at."""

    def __init__(self, holds: Callable, flags: list):
        self.holds, self.flags = holds, flags
        self.result = Directives()
        self.chosen = False  # a dg-do has applied
        self.elsewhere = ""  # no dg-do has: what the last asked for
        self.skips = []

    def read(self, text: str) -> Directives:
        for line in text.splitlines():
            match = DIRECTIVE.search(line) or BARE_DIRECTIVE.search(line)
            if not match:
                continue
            handler = getattr(self, "on_" + match[1].replace("-", "_"), None)
            if handler:
                handler(words_of(match[2] if match.re is DIRECTIVE else ""))
        # The options may come after it.
        for words in self.skips:
            self.skip_if(words)
        if not self.chosen:
            self.skip(self.elsewhere)
        return self.result

    def wanted(self, words: list, at: int) -> bool:
        return len(words) <= at or applies(words[at], self.holds)

    def on_do(self, words: list):
        if self.wanted(words, 1):
            self.result.action, self.chosen = words[0], True
        else:
            self.elsewhere = "for " + words[1].strip()

    def on_options(self, words: list):
        if self.wanted(words, 1):
            self.result.options = words[0].split()

    def on_additional_options(self, words: list):
        if self.wanted(words, 1):
            self.result.more_options += words[0].split()

    def on_additional_sources(self, words: list):
        if self.wanted(words, 1):
            self.result.sources += words[0].split()

    def on_set_target_env_var(self, words: list):
        if self.wanted(words, 2):
            self.result.environment[words[0]] = words[1]

    def on_shouldfail(self, words: list):
        if len(words) < 2 or selected(words[1], self.holds):
            self.result.should_fail = True

    def on_output(self, words: list):
        if self.wanted(words, 1):
            self.result.output += words[0]

    def on_timeout(self, words: list):
        if self.wanted(words, 1):
            self.result.seconds = float(words[0])

    def on_timeout_factor(self, words: list):
        if self.wanted(words, 1):
            self.result.time_factor = float(words[0])

    def on_require_effective_target(self, words: list):
        # A second word limits the demand to some targets.
        if (len(words) < 2 or selected(words[1], self.holds)) and not self.holds(words[0]):
            self.skip("needs " + words[0])

    def on_skip_if(self, words: list):
        self.skips.append(words)

    def skip_if(self, words: list):
        """dg-skip-if WHY SELECTOR [FLAGS [FLAGS THAT SPARE IT]]"""
        if not selected(words[1], self.holds):
            return
        flags = self.flags + (self.result.options or []) + self.result.more_options
        if len(words) > 2 and not has_flags(flags, words_of(words[2])):
            return
        if len(words) > 3 and has_flags(flags, words_of(words[3])):
            return
        self.skip(words[0] or "skipped for " + " ".join(words[1:]))

    def skip(self, reason: str):
        self.result.skipped = self.result.skipped or reason


def has_flags(flags: list, patterns: list) -> bool:
    """Each pattern is one or more flags that must all be there; "*" stands for any, "" for none."""
    for pattern in patterns:
        if pattern == "*":
            return True
        if pattern and all(flag in flags for flag in pattern.split()):
            return True
    return False
