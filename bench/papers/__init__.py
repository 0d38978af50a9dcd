# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables and figures of the papers that bosk is made after, measured here: `./dev bench papers` (../README.md)."""
