#pragma once

#include <memory>
#include <type_traits>

namespace fabric {

namespace detail {
template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* resource) const noexcept {
    static_cast<void>(Free(resource));
  }
};
template <class T>
struct FirstArgument;

template <class R, class A>
struct FirstArgument<R (*)(A*)> {
  using type = A;
};

template <class R, class A>
struct FirstArgument<R (*)(A*) noexcept> {
  using type = A;
};
}  // namespace detail

/// Owns a C library's object: `using NlSocket = UniqueResource<&nl_socket_free>;`
template <auto Free>
using UniqueResource = std::unique_ptr<typename detail::FirstArgument<decltype(Free)>::type, detail::FreeWith<Free>>;

}  // namespace fabric
