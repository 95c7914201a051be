#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fabric::telemetry {

using Labels = std::map<std::string, std::string>;

namespace detail {
struct Slot;
}

/// Handles are cheap to copy and may outlive the Registry and their series: then they write to nothing. Any thread.
class Counter {
 public:
  Counter() = default;
  /// Adds; a negative value is ignored.
  void add(double by = 1.0);
  double value() const;

 private:
  friend class Registry;

  explicit Counter(std::shared_ptr<detail::Slot> slot) : slot_(std::move(slot)) {}

  std::shared_ptr<detail::Slot> slot_;
};

class Gauge {
 public:
  Gauge() = default;
  void set(double to);
  void add(double by);
  double value() const;

 private:
  friend class Registry;

  explicit Gauge(std::shared_ptr<detail::Slot> slot) : slot_(std::move(slot)) {}

  std::shared_ptr<detail::Slot> slot_;
};

class Histogram {
 public:
  Histogram() = default;
  void observe(double value);

 private:
  friend class Registry;

  explicit Histogram(std::shared_ptr<detail::Slot> slot) : slot_(std::move(slot)) {}

  std::shared_ptr<detail::Slot> slot_;
};

/// The metrics of a process. Asking again for the same name and labels gives the same series. Names follow Prometheus
/// (base units, `_total` for counters), are constants, and keep one kind and one help text; a violation is a bug and
/// asserts. Any thread.
class Registry {
 public:
  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry();

  Counter counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  /// `buckets` are ascending upper bounds, without +Inf.
  Histogram histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                      const Labels& labels = {});

  /// Removes one series, for example of a cluster that left; no effect when there is none.
  void remove(const std::string& name, const Labels& labels);
  /// Removes the series of all metrics that carry this label, for example {"remote_cluster", "b"}.
  void remove_where(const std::string& label, const std::string& value);

  /// Prometheus text format 0.0.4, sorted by name and labels.
  std::string render() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fabric::telemetry
