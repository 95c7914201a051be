#pragma once

#include <fabric/json/codec.hpp>
#include <fabric/json/path.hpp>
#include <fabric/json/value.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fabric::json {

/// Describes an aggregate once, for reading, writing and documentation:
///
///   template <> struct Schema<JoinConfig> {
///     static auto fields() {
///       return std::tuple{required("clusterID", &JoinConfig::cluster_id),
///                         optional("nattPort", &JoinConfig::natt_port).in(1, 65535),
///                         with_default("backend", &JoinConfig::backend, "xfrm")};
///     }
///   };
///
/// JSON null counts as absent. Unknown members are ignored on reading and never written.
template <class T>
struct Schema;

template <class T>
concept HasSchema = requires { Schema<T>::fields(); };

/// How a field behaves when it is absent from the text, and when it is written.
enum class Presence : std::uint8_t {
  required,  ///< Absent is an error; always written.
  optional,  ///< Absent keeps the member's initial value; that value (or an empty list, map, object) is not written.
  always,    ///< Absent keeps the member's initial value; always written. For readers that insist on a field.
};

template <class T, class M, class Fallback = std::monostate>
struct Field {
  using Owner = T;
  using Member = M;
  std::string_view key;
  M T::* member = nullptr;
  Presence presence = Presence::required;
  std::optional<std::pair<std::int64_t, std::int64_t>> range;
  [[no_unique_address]] Fallback fallback{};  ///< An M for with_default, else nothing.

  /// Bounds of a number, both included.
  Field in(std::int64_t min, std::int64_t max) && {
    range.emplace(min, max);
    return std::move(*this);
  }
};

template <class T, class M>
Field<T, M> required(std::string_view key, M T::* member) {
  return {key, member, Presence::required, {}, {}};
}

template <class T, class M>
Field<T, M> optional(std::string_view key, M T::* member) {
  return {key, member, Presence::optional, {}, {}};
}

template <class T, class M>
Field<T, M> always(std::string_view key, M T::* member) {
  return {key, member, Presence::always, {}, {}};
}

/// Absent reads as `value`; always written.
template <class T, class M, class V>
Field<T, M, M> with_default(std::string_view key, M T::* member, V value) {
  return {key, member, Presence::always, {}, M(std::move(value))};
}

namespace detail {

template <class T>
struct Inner {
  using type = T;
  static constexpr std::string_view suffix = "";
};

template <class U>
struct Inner<std::optional<U>> : Inner<U> {};

template <class U>
struct Inner<std::vector<U>> {
  using type = typename Inner<U>::type;
  static constexpr std::string_view suffix = "[]";
};

template <class U, class C>
struct Inner<std::map<std::string, U, C>> {
  using type = typename Inner<U>::type;
  static constexpr std::string_view suffix = "{}";
};

template <class M>
inline constexpr bool kIsOptional = false;
template <class U>
inline constexpr bool kIsOptional<std::optional<U>> = true;

/// The number inside of an integer or optional integer, for range checks.
template <class M>
std::optional<std::int64_t> number_of(const M& member) {
  if constexpr (kIsOptional<M>) {
    return member ? number_of(*member) : std::nullopt;
  } else if constexpr (std::integral<M> && !std::same_as<M, bool>) {
    return std::in_range<std::int64_t>(member) ? std::optional(static_cast<std::int64_t>(member)) : std::nullopt;
  } else {
    return std::nullopt;
  }
}

template <class T, class M, class F>
Result<> read_field(const Field<T, M, F>& field, const Value& object, const Path& path, T& out) {
  const Value* value = object.find(field.key);
  const Path here = path.field(field.key);
  if (value == nullptr || value->is_null()) {
    if (field.presence == Presence::required) return missing(here);
    if constexpr (std::same_as<F, M>) out.*(field.member) = field.fallback;
    return {};
  }
  FABRIC_TRY(auto member, Codec<M>::read(*value, here));
  if (field.range) {
    const auto number = number_of(member);
    if (!number || *number < field.range->first || *number > field.range->second) {
      return mismatch(here, fmt::format("{}..{}", field.range->first, field.range->second), *value);
    }
  }
  out.*(field.member) = std::move(member);
  return {};
}

/// Whether an optional field has the value that reading gives when it is absent.
template <class T, class M, class F>
bool is_absent(const Field<T, M, F>& field, const T& object, const Value& written) {
  const M& member = object.*(field.member);
  if constexpr (kIsOptional<M>) {
    return !member.has_value();
  } else if constexpr (std::same_as<M, Value>) {
    return member.is_null();
  } else if constexpr (HasSchema<M>) {
    return written.if_object() != nullptr && written.if_object()->empty();
  } else if constexpr (std::same_as<M, std::string> || !requires { member.empty(); }) {
    static const T kInitial{};
    return member == kInitial.*(field.member);
  } else {
    return member.empty();
  }
}

template <class T, class M, class F>
void write_field(const Field<T, M, F>& field, const T& object, Object& out) {
  if constexpr (kIsOptional<M>) {
    if (!(object.*(field.member)).has_value()) return;
  }
  Value written = Codec<M>::write(object.*(field.member));
  if (field.presence == Presence::optional && is_absent(field, object, written)) return;
  out.insert_or_assign(std::string(field.key), std::move(written));
}

}  // namespace detail

template <HasSchema T>
struct Codec<T> {
  static Result<T> read(const Value& value, const Path& path) {
    if (!value.is_object()) return mismatch(path, "an object", value);
    T out{};
    Result<> status;
    std::apply(
        [&](const auto&... field) {
          static_cast<void>(((status = detail::read_field(field, value, path, out)).has_value() && ...));
        },
        Schema<T>::fields());
    if (!status) return std::unexpected(std::move(status).error());
    return out;
  }

  static Value write(const T& object) {
    Object out;
    std::apply([&](const auto&... field) { (detail::write_field(field, object, out), ...); }, Schema<T>::fields());
    return Value(std::move(out));
  }
};

/// Reads a typed value; errors are Errc::invalid and begin with the path below `root`.
template <class T>
Result<T> read(const Value& value, std::string_view root = "") {
  return Codec<T>::read(value, Path(root));
}

template <class T>
Value to_value(const T& object) {
  return Codec<T>::write(object);
}

/// Text to typed value and back.
template <class T>
Result<T> decode(std::string_view text) {
  FABRIC_TRY(const Value value, parse(text));
  return read<T>(value);
}

template <class T>
std::string encode(const T& object) {
  return write(to_value(object));
}

/// A typed value somewhere inside a tree: `get<std::string>(pod, {"spec", "nodeName"})`. Absent or null is
/// Errc::not_found, a wrong type Errc::invalid, both with the whole path.
template <class T>
Result<T> get(const Value& value, std::initializer_list<std::string_view> path) {
  std::string text;
  for (const auto segment : path)
    text += (text.empty() ? "" : ".") + std::string(segment);
  const Value* found = value.at(path);
  if (found == nullptr || found->is_null()) return fail(Errc::not_found, "{}: absent", text);
  return Codec<T>::read(*found, Path(text));
}

/// Every path that the schema of T knows, in declaration order, parents first: "spec", "spec.gateways",
/// "spec.gateways[].node", "status.peers{}.ip". Lets a test compare it with a CRD.
template <HasSchema T>
void collect_paths(std::string_view prefix, std::vector<std::string>& out) {
  const auto one = [&]<class O, class M, class F>(const Field<O, M, F>& field) {
    std::string path = prefix.empty() ? std::string(field.key) : fmt::format("{}.{}", prefix, field.key);
    out.push_back(path);
    using Nested = detail::Inner<M>;
    if constexpr (HasSchema<typename Nested::type>) {
      path += Nested::suffix;
      collect_paths<typename Nested::type>(path, out);
    }
  };
  std::apply([&](const auto&... field) { (one(field), ...); }, Schema<T>::fields());
}

template <HasSchema T>
std::vector<std::string> schema_paths() {
  std::vector<std::string> out;
  collect_paths<T>("", out);
  return out;
}

}  // namespace fabric::json
