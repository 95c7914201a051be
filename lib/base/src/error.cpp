#include <fabric/base/error.hpp>

#include <cerrno>

namespace fabric {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::not_found:
      return "not found";
    case Errc::already_exists:
      return "already exists";
    case Errc::conflict:
      return "conflict";
    case Errc::gone:
      return "gone";
    case Errc::invalid:
      return "invalid";
    case Errc::unsupported:
      return "unsupported";
    case Errc::unauthorized:
      return "unauthorized";
    case Errc::forbidden:
      return "forbidden";
    case Errc::unavailable:
      return "unavailable";
    case Errc::timeout:
      return "timeout";
    case Errc::cancelled:
      return "cancelled";
    case Errc::internal:
      return "internal error";
  }
  return "unknown";
}

Error Error::with(std::string_view outer) && {
  context = context.empty() ? std::string(outer) : fmt::format("{}: {}", outer, context);
  return std::move(*this);
}

std::string Error::message() const {
  std::string text = context.empty() ? std::string(to_string(code)) : context;
  if (cause) text += ": " + cause.message();
  return text;
}

std::unexpected<Error> fail_errno(int errno_value, std::string context) {
  return std::unexpected(Error{errc_of_errno(errno_value), std::move(context), {errno_value, std::system_category()}});
}

Errc errc_of_errno(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case EADDRNOTAVAIL:
      return Errc::not_found;
    case EEXIST:
      return Errc::already_exists;
    case EINVAL:
    case ERANGE:
      return Errc::invalid;
    case ENOSYS:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
      return Errc::unsupported;
    case EPERM:
    case EACCES:
      return Errc::forbidden;
    case EBUSY:
    case EADDRINUSE:
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return Errc::unavailable;
    case ETIMEDOUT:
      return Errc::timeout;
    case ECANCELED:
      return Errc::cancelled;
    default:
      return Errc::internal;
  }
}

}  // namespace fabric
