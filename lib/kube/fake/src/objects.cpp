#include <fabric/kube/fake/objects.hpp>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

namespace fabric::kube::fake {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ec == std::errc{}) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string_view trim(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

// Commas inside of parentheses do not separate.
std::vector<std::string_view> requirements(std::string_view selector) {
  std::vector<std::string_view> out;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= selector.size(); ++i) {
    if (i < selector.size() && selector[i] == '(') ++depth;
    if (i < selector.size() && selector[i] == ')') --depth;
    if (i < selector.size() && (selector[i] != ',' || depth > 0)) continue;
    if (const auto one = trim(selector.substr(start, i - start)); !one.empty()) out.push_back(one);
    start = i + 1;
  }
  return out;
}

bool in_list(std::string_view list, const std::string& value) {
  const std::size_t open = list.find('(');
  const std::size_t close = list.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return false;
  return std::ranges::any_of(split(list.substr(open + 1, close - open - 1), ','),
                             [&](std::string_view one) { return trim(one) == value; });
}

bool meets(std::string_view requirement, const json::Value& object) {
  const auto value = [&](std::string_view key) { return object.at({"metadata", "labels", trim(key)}); };
  const auto text = [&](std::string_view key) { return object.string_at({"metadata", "labels", trim(key)}); };
  if (const auto at = requirement.find(" notin "); at != std::string_view::npos) {
    const auto key = requirement.substr(0, at);
    return value(key) == nullptr || !in_list(requirement, text(key));
  }
  if (const auto at = requirement.find(" in "); at != std::string_view::npos) {
    const auto key = requirement.substr(0, at);
    return value(key) != nullptr && in_list(requirement, text(key));
  }
  if (const auto at = requirement.find("!="); at != std::string_view::npos)
    return text(requirement.substr(0, at)) != trim(requirement.substr(at + 2)) ||
           value(requirement.substr(0, at)) == nullptr;
  if (const auto at = requirement.find('='); at != std::string_view::npos) {
    auto wanted = requirement.substr(at + 1);
    if (wanted.starts_with('=')) wanted.remove_prefix(1);
    return value(requirement.substr(0, at)) != nullptr && text(requirement.substr(0, at)) == trim(wanted);
  }
  if (requirement.starts_with('!')) return value(requirement.substr(1)) == nullptr;
  return value(requirement) != nullptr;
}

const json::Value* value_at(const json::Value& root, std::span<const std::string> path) {
  const json::Value* value = &root;
  for (const std::string& step : path) {
    if (value == nullptr) return nullptr;
    value = value->find(step);
  }
  return value;
}

void set_at(json::Value& root, std::span<const std::string> path, const json::Value& value) {
  json::Value* target = &root;
  for (const std::string& step : path) {
    if (!target->is_object()) *target = json::Object{};
    target = &(*target)[step];
  }
  *target = value;
}

void erase_at(json::Value& root, std::span<const std::string> path) {
  if (path.empty() || !root.is_object()) return;
  json::Object& object = *root.if_object();
  const auto found = object.find(path.front());
  if (found == object.end()) return;
  if (path.size() == 1) {
    object.erase(found);
    return;
  }
  erase_at(found->second, path.subspan(1));
  if (found->second.is_object() && found->second.if_object()->empty()) object.erase(found);
}

void collect(const json::Value& value, FieldPath& path, FieldSet& out) {
  if (const json::Object* object = value.if_object(); object != nullptr && !object->empty()) {
    for (const auto& [key, member] : *object) {
      path.push_back(key);
      collect(member, path, out);
      path.pop_back();
    }
    return;
  }
  if (!path.empty()) out.insert(path);
}

bool identifies(const FieldPath& path) {
  if (path.size() == 1) return path[0] == "apiVersion" || path[0] == "kind";
  return path.size() == 2 && path[0] == "metadata" &&
         (path[1] == "name" || path[1] == "namespace" || path[1] == "uid" || path[1] == "resourceVersion");
}

std::string joined(const FieldPath& path) {
  std::string out;
  for (const std::string& step : path)
    out += "." + step;
  return out;
}

Result<void> check_conflicts(const Stored& stored, const json::Value& config, const FieldSet& fields,
                             const std::string& manager) {
  for (const auto& [owner, owned] : stored.managers) {
    if (owner == manager) continue;
    for (const FieldPath& path : fields) {
      if (!owned.contains(path)) continue;
      const json::Value* now = value_at(stored.object, path);
      if (now == nullptr || *now == *value_at(config, path)) continue;
      return fail(Errc::conflict, "Apply failed with 1 conflict: conflict with \"{}\": {}", owner, joined(path));
    }
  }
  return {};
}

}  // namespace

std::string Target::parameter(std::string_view name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string() : found->second;
}

Result<Target> parse_target(std::string_view text) {
  const std::size_t mark = text.find('?');
  Target out;
  if (mark != std::string_view::npos) {
    for (const std::string_view pair : split(text.substr(mark + 1), '&')) {
      const std::size_t equals = std::min(pair.find('='), pair.size());
      out.query[decode(pair.substr(0, equals))] = decode(equals < pair.size() ? pair.substr(equals + 1) : "");
    }
  }
  std::vector<std::string> parts;
  for (const std::string_view part : split(text.substr(0, mark), '/')) {
    if (!part.empty()) parts.push_back(decode(part));
  }
  const bool core = !parts.empty() && parts[0] == "api";
  const std::size_t head = core ? 2 : 3;
  if (parts.size() <= head || (!core && parts[0] != "apis")) return fail(Errc::not_found, "no such path");
  out.api_version = core ? parts[1] : parts[1] + "/" + parts[2];
  out.collection = (core ? "/api/" : "/apis/") + out.api_version + "/";
  std::span<const std::string> rest(parts.begin() + static_cast<std::ptrdiff_t>(head), parts.end());
  // /namespaces/x is a Namespace, /namespaces/x/pods are its pods.
  if (rest.size() > 2 && rest[0] == "namespaces" && rest[2] != "status") {
    out.key.ns = rest[1];
    rest = rest.subspan(2);
  }
  out.plural = rest[0];
  out.collection += rest[0];
  if (rest.size() > 1) out.key.name = rest[1];
  if (rest.size() > 2) out.subresource = rest[2];
  return out;
}

bool matches_labels(std::string_view selector, const json::Value& object) {
  return std::ranges::all_of(requirements(selector), [&](std::string_view one) { return meets(one, object); });
}

bool matches_fields(std::string_view selector, const json::Value& object) {
  return std::ranges::all_of(requirements(selector), [&](std::string_view one) {
    const bool differs = one.find("!=") != std::string_view::npos;
    const std::size_t at = one.find(differs ? "!=" : "=");
    const auto path = split(one.substr(0, at), '.');
    const std::string value = path.size() == 2 ? object.string_at({path[0], path[1]}) : std::string();
    return (value == one.substr(at + (differs ? 2 : 1))) != differs;
  });
}

bool selected(const Target& target, const json::Value& object) {
  if (!target.key.ns.empty() && object.string_at({"metadata", "namespace"}) != target.key.ns) return false;
  return matches_labels(target.parameter("labelSelector"), object) &&
         matches_fields(target.parameter("fieldSelector"), object);
}

void merge_patch(json::Value& target, const json::Value& patch) {
  const json::Object* members = patch.if_object();
  if (members == nullptr) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::Object{};
  for (const auto& [key, value] : *members) {
    if (value.is_null())
      target.if_object()->erase(key);
    else
      merge_patch(target[key], value);
  }
}

FieldSet fields_of(const json::Value& object) {
  FieldSet out;
  FieldPath path;
  collect(object, path, out);
  std::erase_if(out, identifies);
  return out;
}

Result<void> apply_config(Stored& stored, const json::Value& config, const std::string& manager, bool force) {
  const FieldSet fields = fields_of(config);
  if (!force) FABRIC_CHECK(check_conflicts(stored, config, fields, manager));
  for (const FieldPath& path : fields) {
    const json::Value& wanted = *value_at(config, path);
    const json::Value* now = value_at(stored.object, path);
    // Who forces a value takes the field; who applies the same value shares it.
    if (now == nullptr || *now != wanted) {
      for (auto& [owner, owned] : stored.managers) {
        if (owner != manager) owned.erase(path);
      }
    }
    set_at(stored.object, path, wanted);
  }
  FieldSet before = std::exchange(stored.managers[manager], fields);
  for (const FieldPath& path : before) {
    const bool kept =
        std::ranges::any_of(stored.managers, [&](const auto& entry) { return entry.second.contains(path); });
    if (!kept) erase_at(stored.object, path);
  }
  return {};
}

}  // namespace fabric::kube::fake
