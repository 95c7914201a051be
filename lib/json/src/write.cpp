#include <fabric/json/value.hpp>

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>

namespace fabric::json {

namespace {

rapidjson::SizeType size_of(std::string_view text) {
  return static_cast<rapidjson::SizeType>(text.size());
}

// Recursion is as deep as the tree, which parse and our own manifests keep small.
template <class Writer>
void emit(Writer& writer, const Value& value) {
  if (const bool* b = value.if_bool()) {
    writer.Bool(*b);
  } else if (const auto* i = value.if_int64()) {
    writer.Int64(*i);
  } else if (const auto* u = value.if_large_uint64()) {
    writer.Uint64(*u);
  } else if (const auto* d = value.if_double(); d != nullptr && std::isfinite(*d)) {
    writer.Double(*d);
  } else if (const auto* s = value.if_string()) {
    writer.String(s->data(), size_of(*s));
  } else if (const auto* array = value.if_array()) {
    writer.StartArray();
    for (const auto& element : *array)
      emit(writer, element);
    writer.EndArray();
  } else if (const auto* object = value.if_object()) {
    writer.StartObject();
    for (const auto& [key, member] : *object) {
      writer.Key(key.data(), size_of(key));
      emit(writer, member);
    }
    writer.EndObject();
  } else {
    writer.Null();
  }
}

}  // namespace

std::string write(const Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  emit(writer, value);
  return {buffer.GetString(), buffer.GetSize()};
}

std::string write_pretty(const Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
  writer.SetIndent(' ', 2);
  emit(writer, value);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace fabric::json
