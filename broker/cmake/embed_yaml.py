#!/usr/bin/env python3
"""Writes the documents of a YAML file as a C++ array of JSON texts, so that the program needs no file at run time.

usage: embed_yaml.py INPUT.yaml OUTPUT.cpp NAMESPACE FUNCTION
"""
import json
import sys

import yaml


def main() -> None:
    source, target, namespace, function = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        documents = [document for document in yaml.safe_load_all(file) if document]
    texts = [json.dumps(document, separators=(",", ":"), sort_keys=True) for document in documents]
    for text in texts:
        if ')json"' in text:
            sys.exit(f"{source}: contains the raw string delimiter )json\"")
    lines = ["#include <array>", "#include <span>", "#include <string_view>", f"namespace {namespace} {{"]
    lines += [f"std::span<const std::string_view> {function}();"]
    lines += [f"std::span<const std::string_view> {function}() {{"]
    lines += [f"  static constexpr std::array<std::string_view, {len(texts)}> kDocuments{{"]
    lines += [f'    std::string_view(R"json({text})json"),' for text in texts]
    lines += ["  };", "  return kDocuments;", "}", f"}}  // namespace {namespace}", ""]
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


main()
