#include <fabric/api/fabric.hpp>

namespace fabric::json {

// The CRD cannot give this field a type, so anything may arrive. What is neither form becomes its JSON text, which
// validate() refuses as a name: one odd object must not make the list of Fabrics unreadable.
Result<api::SecretReference> Codec<api::SecretReference>::read(const Value& value, const Path&) {
  const Value* name = value.is_object() ? value.find("name") : &value;
  if (name != nullptr && name->is_string()) return api::SecretReference{*name->if_string()};
  return api::SecretReference{json::write(value).substr(0, 64)};
}

Value Codec<api::SecretReference>::write(const api::SecretReference& reference) {
  return Object{{"name", reference.name}};
}

template struct Codec<api::Fabric>;

}  // namespace fabric::json
