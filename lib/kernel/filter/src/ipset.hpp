#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine.hpp"

struct ipset_session;

/// Kernel ipsets of type hash:net through libipset's session API; its line parser would end the process on an error.
namespace fabric::kernel {

class IpsetSession {
 public:
  static Result<IpsetSession> open();

  /// All sets whose name has our prefix. A set of another type has the content of another family, so that it equals no
  /// plan.
  Result<std::map<std::string, IpSet>> observe();
  /// Fills a stand-in and swaps it in: no packet meets a half-filled set.
  Result<void> put(const std::string& name, const IpSet& set);
  /// Idempotent. Errc::unavailable while a rule uses the set.
  Result<void> remove(const std::string& name);
  Result<std::vector<std::string>> names();

 private:
  struct Close {
    void operator()(ipset_session* session) const noexcept;
  };

  explicit IpsetSession(std::unique_ptr<ipset_session, Close> session, std::unique_ptr<std::string> output)
      : output_(std::move(output)), session_(std::move(session)) {}

  Result<void> command(int command, std::string_view what);
  Result<void> failed(std::string_view what);
  Result<void> create(const std::string& name, Family family);
  Result<void> fill(const std::string& name, const IpSet& set);
  Result<std::string> save(const std::string& name);
  std::unique_ptr<std::string> output_;  ///< Where libipset prints; its address stays when this object moves.
  std::unique_ptr<ipset_session, Close> session_;
};

/// Decodes "create NAME hash:net family inet ..." and "add NAME 10.0.0.0/8" lines. Pure.
IpSet parse_saved_set(std::string_view text);

}  // namespace fabric::kernel
