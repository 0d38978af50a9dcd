# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of all tables, and which of them are meant by names."""

import fnmatch

from . import bubbles, forestgomp, next_touch
from .model import Table

TABLES: tuple[Table, ...] = bubbles.TABLES + forestgomp.TABLES + next_touch.TABLES


class UnknownTable(Exception):
    """A name that no table has."""


def matches(table: Table, name: str) -> bool:
    return name in (table.name, table.paper) or fnmatch.fnmatchcase(table.name, name)


def choose(names: list[str]) -> list[Table]:
    for name in names:
        if not any(matches(table, name) for table in TABLES):
            raise UnknownTable(f"there is no table '{name}': name some of {', '.join(table.name for table in TABLES)}, or a paper"
                               f" ({', '.join(dict.fromkeys(table.paper for table in TABLES))})")
    return [table for table in TABLES if not names or any(matches(table, name) for name in names)]
