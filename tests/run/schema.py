# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""schema.py SCHEMA FILE...: are these files of JSON what the schema says? As much of JSON Schema as docs/report.schema.json uses, and stricter: what it
does not describe is an error."""

import json, sys
schema = json.load(open(sys.argv[1]))
types = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
def is_of(value, name):
    if name == "integer": return isinstance(value, int) and not isinstance(value, bool)
    if name == "number": return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, types[name])
def check(value, by, at):
    if "$ref" in by: check(value, schema["$defs"][by["$ref"].rsplit("/", 1)[1]], at)
    if "const" in by: assert value == by["const"], at
    if "type" in by:
        names = by["type"] if isinstance(by["type"], list) else [by["type"]]
        assert any(is_of(value, name) for name in names), f"{at}: {value}"
    if "minimum" in by: assert value >= by["minimum"], at
    if "maximum" in by: assert value <= by["maximum"], at
    if not isinstance(value, (dict, list)): return
    for name in by.get("required", ()): assert name in value, f"{at}: no {name}"
    if "properties" in by:
        for name, part in value.items():
            assert name in by["properties"], f"{at}: {name} is not described"
            check(part, by["properties"][name], f"{at}.{name}")
    if "additionalProperties" in by:
        for name, part in value.items(): check(part, by["additionalProperties"], f"{at}.{name}")
    if "items" in by:
        for part in value: check(part, by["items"], at + "[]")
for name in sys.argv[2:]: check(json.load(open(name)), schema, name)
