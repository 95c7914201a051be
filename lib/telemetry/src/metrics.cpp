#include <fabric/base/assert.hpp>
#include <fabric/telemetry/metrics.hpp>

#include <algorithm>
#include <mutex>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <utility>
#include <variant>

namespace fabric::telemetry {

namespace detail {

// What a handle points to. The lock is held while a series is written, so that removal never frees it under a writer.
struct Slot {
  std::mutex mutex;
  std::variant<std::monostate, prometheus::Counter*, prometheus::Gauge*, prometheus::Histogram*> series;
};

}  // namespace detail

namespace {

template <class Metric, class F>
void with_series(const std::shared_ptr<detail::Slot>& slot, F write) {
  if (!slot) return;
  const std::lock_guard lock(slot->mutex);
  if (auto* const* series = std::get_if<Metric*>(&slot->series)) write(**series);
}

using AnyFamily = std::variant<prometheus::Family<prometheus::Counter>*, prometheus::Family<prometheus::Gauge>*,
                               prometheus::Family<prometheus::Histogram>*>;

struct FamilyEntry {
  AnyFamily family;
  std::map<Labels, std::shared_ptr<detail::Slot>> slots;
};

}  // namespace

struct Registry::State {
  std::mutex mutex;
  prometheus::Registry registry;
  std::map<std::string, FamilyEntry> families;

  template <class Metric, class Builder, class... Extra>
  std::shared_ptr<detail::Slot> series(Builder builder, const std::string& name, const std::string& help,
                                       const Labels& labels, const Extra&... extra) {
    using Family = prometheus::Family<Metric>;
    const std::lock_guard lock(mutex);
    auto found = families.find(name);
    if (found == families.end()) {
      // The serializer writes the help text as it is.
      FABRIC_ASSERT(help.find_first_of("\n\\") == std::string::npos);
      Family& family = builder.Name(name).Help(help).Register(registry);
      found = families.emplace(name, FamilyEntry{&family, {}}).first;
    }
    FABRIC_ASSERT(std::holds_alternative<Family*>(found->second.family));
    auto& slot = found->second.slots[labels];
    if (!slot) {
      slot = std::make_shared<detail::Slot>();
      slot->series = &std::get<Family*>(found->second.family)->Add(labels, extra...);
    }
    return slot;
  }

  static void forget(FamilyEntry& entry, const std::shared_ptr<detail::Slot>& slot) {
    const std::lock_guard lock(slot->mutex);
    std::visit(
        [&](auto* family) {
          std::visit(
              [&](auto series) {
                if constexpr (requires { family->Remove(series); }) family->Remove(series);
              },
              slot->series);
        },
        entry.family);
    slot->series = std::monostate();
  }
};

void Counter::add(double by) {
  with_series<prometheus::Counter>(slot_, [&](prometheus::Counter& series) { series.Increment(by); });
}

double Counter::value() const {
  double value = 0;
  with_series<prometheus::Counter>(slot_, [&](const prometheus::Counter& series) { value = series.Value(); });
  return value;
}

void Gauge::set(double to) {
  with_series<prometheus::Gauge>(slot_, [&](prometheus::Gauge& series) { series.Set(to); });
}

void Gauge::add(double by) {
  with_series<prometheus::Gauge>(slot_, [&](prometheus::Gauge& series) { series.Increment(by); });
}

double Gauge::value() const {
  double value = 0;
  with_series<prometheus::Gauge>(slot_, [&](const prometheus::Gauge& series) { value = series.Value(); });
  return value;
}

void Histogram::observe(double value) {
  with_series<prometheus::Histogram>(slot_, [&](prometheus::Histogram& series) { series.Observe(value); });
}

Registry::Registry() : state_(std::make_unique<State>()) {}

// NOLINTNEXTLINE(bugprone-exception-escape): to erase what is there throws nothing.
Registry::~Registry() {
  for (auto& [name, entry] : state_->families) {
    for (const auto& [labels, slot] : entry.slots)
      State::forget(entry, slot);
  }
}

Counter Registry::counter(const std::string& name, const std::string& help, const Labels& labels) {
  return Counter(state_->series<prometheus::Counter>(prometheus::BuildCounter(), name, help, labels));
}

Gauge Registry::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return Gauge(state_->series<prometheus::Gauge>(prometheus::BuildGauge(), name, help, labels));
}

Histogram Registry::histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                              const Labels& labels) {
  return Histogram(state_->series<prometheus::Histogram>(prometheus::BuildHistogram(), name, help, labels, buckets));
}

void Registry::remove(const std::string& name, const Labels& labels) {
  const std::lock_guard lock(state_->mutex);
  const auto family = state_->families.find(name);
  if (family == state_->families.end()) return;
  const auto slot = family->second.slots.find(labels);
  if (slot == family->second.slots.end()) return;
  State::forget(family->second, slot->second);
  family->second.slots.erase(slot);
}

void Registry::remove_where(const std::string& label, const std::string& value) {
  const std::lock_guard lock(state_->mutex);
  for (auto& [name, entry] : state_->families) {
    std::erase_if(entry.slots, [&](const auto& series) {
      const auto found = series.first.find(label);
      if (found == series.first.end() || found->second != value) return false;
      State::forget(entry, series.second);
      return true;
    });
  }
}

std::string Registry::render() const {
  auto families = state_->registry.Collect();
  std::ranges::sort(families, {}, &prometheus::MetricFamily::name);
  for (auto& family : families) {
    std::ranges::sort(family.metric, [](const auto& a, const auto& b) {
      const auto pairs = [](const auto& metric) {
        std::vector<std::pair<std::string, std::string>> labels;
        for (const auto& label : metric.label)
          labels.emplace_back(label.name, label.value);
        return labels;
      };
      return pairs(a) < pairs(b);
    });
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace fabric::telemetry
