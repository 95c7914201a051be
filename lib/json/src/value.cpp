#include <fabric/base/assert.hpp>
#include <fabric/json/value.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace fabric::json {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_nocase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

const Value* element(const Array& array, std::string_view segment) {
  std::size_t index = 0;
  const char* end = segment.data() + segment.size();
  const auto [last, error] = std::from_chars(segment.data(), end, index);
  return error == std::errc{} && last == end && index < array.size() ? &array[index] : nullptr;
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return "unknown";
}

Kind Value::kind() const {
  constexpr std::array kKinds{Kind::null,   Kind::boolean, Kind::integer, Kind::integer,
                              Kind::number, Kind::string,  Kind::array,   Kind::object};
  return kKinds[data_.index()];
}

const Value* Value::find(std::string_view key) const {
  const Object* object = if_object();
  if (object == nullptr) return nullptr;
  const auto found = object->find(key);
  return found == object->end() ? nullptr : &found->second;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

const Value* Value::find_nocase(std::string_view key) const {
  if (const Value* exact = find(key)) return exact;
  const Object* object = if_object();
  if (object == nullptr) return nullptr;
  for (const auto& [name, member] : *object) {
    if (equal_nocase(name, key)) return &member;
  }
  return nullptr;
}

const Value* Value::at(std::initializer_list<std::string_view> path) const {
  const Value* here = this;
  for (const auto segment : path) {
    const Array* array = here->if_array();
    here = array != nullptr ? element(*array, segment) : here->find(segment);
    if (here == nullptr) return nullptr;
  }
  return here;
}

std::string Value::string_at(std::initializer_list<std::string_view> path, std::string_view fallback) const {
  const Value* found = at(path);
  const std::string* text = found != nullptr ? found->if_string() : nullptr;
  return text != nullptr ? *text : std::string(fallback);
}

Value& Value::operator[](std::string_view key) {
  if (is_null()) data_ = Object{};
  Object* object = if_object();
  FABRIC_ASSERT(object != nullptr);
  const auto found = object->find(key);
  return found != object->end() ? found->second : (*object)[std::string(key)];
}

void Value::push_back(Value value) {
  if (is_null()) data_ = Array{};
  Array* array = if_array();
  FABRIC_ASSERT(array != nullptr);
  array->push_back(std::move(value));
}

bool Value::operator==(const Value& other) const {
  return data_ == other.data_;
}

}  // namespace fabric::json
