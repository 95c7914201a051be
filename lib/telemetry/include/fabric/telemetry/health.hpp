#pragma once

#include <map>
#include <string>

namespace fabric::telemetry {

/// What a process says about itself to probes: named conditions, each ready or not with a reason. Ready when all are.
/// Belongs to the io thread.
class Health {
 public:
  /// Declares or changes a condition. The reason names what is waited for, for a person.
  void set(const std::string& condition, bool ready, std::string reason = {});
  void remove(const std::string& condition);

  /// False while no condition was declared.
  bool ready() const;
  /// One line per condition: "stores ok" or "stores waiting: endpoints not synced".
  std::string report() const;

 private:
  struct Condition {
    bool ready = false;
    std::string reason;
  };

  std::map<std::string, Condition> conditions_;
};

}  // namespace fabric::telemetry
