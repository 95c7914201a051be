#include <fabric/json/time.hpp>
#include <fabric/kube/events.hpp>
#include <fabric/telemetry/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace fabric::kube {
namespace {

// Validation of events.k8s.io/v1: note at most 1 KiB, reason and action 128 bytes.
constexpr std::size_t kMaxNote = 1024;
constexpr std::size_t kMaxWord = 128;

std::string identity_of(const api::Event& event) {
  const api::ObjectReference& about = event.regarding;
  return fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", about.api_version, about.kind, about.ns,
                     about.name, about.uid, event.type, event.reason, event.action, event.note);
}

// client-go's form: the object's name and a number that no other event of this object has, as a DNS subdomain.
std::string event_name(std::string_view object, std::uint64_t number) {
  constexpr std::size_t kMaxPrefix = 253 - 1 - 16;
  std::string_view prefix = object.substr(0, kMaxPrefix);
  while (prefix.ends_with('.') || prefix.ends_with('-'))
    prefix.remove_suffix(1);
  return fmt::format("{}.{:x}", prefix.empty() ? "event" : prefix, number);
}

}  // namespace

std::string cut_text(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view kEllipsis = "...";
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t end = max_bytes < kEllipsis.size() ? 0 : max_bytes - kEllipsis.size();
  // A UTF-8 continuation byte (10xxxxxx) belongs to the character before it.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return std::string(text.substr(0, end)) + std::string(kEllipsis.substr(0, max_bytes - end));
}

EventRecorder::EventRecorder(Client& client, async::Executor executor, async::Clock& clock,
                             telemetry::Registry& metrics, EventOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      wake_(std::move(executor)),
      tokens_(options_.burst),
      refilled_(clock.steady()),
      dropped_(metrics.counter("fabric_events_dropped_total", "Events that exceeded the rate or the backlog.")) {}

void EventRecorder::record(api::ObjectReference regarding, EventKind kind, std::string_view reason,
                           std::string_view action, std::string_view note) {
  forget_old();
  const json::MicroTime now = clock_.now();
  api::Event event;
  event.metadata.ns = regarding.ns.empty() ? options_.fallback_namespace : regarding.ns;
  event.event_time = now;
  event.reporting_controller = options_.controller;
  event.reporting_instance = cut_text(options_.instance, kMaxWord);
  event.action = cut_text(action, kMaxWord);
  event.reason = cut_text(reason, kMaxWord);
  event.type = kind == EventKind::normal ? "Normal" : "Warning";
  event.note = cut_text(note, kMaxNote);
  event.regarding = std::move(regarding);

  std::string identity = identity_of(event);
  const auto known = series_.find(identity);
  if (known != series_.end()) {
    std::optional<api::EventSeries>& series = known->second.event.series;
    series = api::EventSeries{series ? series->count + 1 : 2, now};
    if (known->second.queued) return;
  }
  if (pending_.size() >= options_.max_pending || !take_token()) return dropped_.add();
  if (known == series_.end()) {
    event.metadata.name =
        event_name(event.regarding.name, static_cast<std::uint64_t>(now.time_since_epoch().count()) + last_name_++);
    series_.emplace(identity, Series{std::move(event), false, true});
  } else {
    known->second.queued = true;
  }
  pending_.push_back(std::move(identity));
  wake_.notify();
}

bool EventRecorder::take_token() {
  const async::SteadyTime now = clock_.steady();
  const auto passed = std::chrono::duration<double>(now - refilled_) / std::chrono::duration<double>(options_.refill);
  tokens_ = std::min(static_cast<double>(options_.burst), tokens_ + passed);
  refilled_ = now;
  if (tokens_ < 1.0) return false;
  tokens_ -= 1.0;
  return true;
}

void EventRecorder::forget_old() {
  const json::MicroTime now = clock_.now();
  std::erase_if(series_, [&](const auto& entry) {
    const api::Event& event = entry.second.event;
    const json::MicroTime last = event.series ? *event.series->last_observed_time : *event.event_time;
    return !entry.second.queued && now - last >= options_.series_window;
  });
}

async::Task<Result<void>> EventRecorder::send(std::string identity) {
  const auto found = series_.find(identity);
  if (found == series_.end()) co_return Result<void>();
  Series& series = found->second;
  series.queued = false;
  if (!series.created) {
    const api::Event event = series.event;
    auto written = co_await client_.create(resource_of<api::Event>(), api::to_object(event));
    // Somebody has this name already only when an earlier try was written and its answer lost.
    if (!written && written.error().code != Errc::already_exists) co_return std::unexpected(std::move(written).error());
    if (const auto now = series_.find(identity); now != series_.end()) now->second.created = true;
    co_return Result<void>();
  }
  const ObjectKey key{series.event.metadata.ns, series.event.metadata.name};
  json::Value patch = json::Object{{"series", json::to_value(*series.event.series)}};
  auto patched = co_await client_.merge_patch(resource_of<api::Event>(), key, std::move(patch));
  if (!patched) co_return std::unexpected(std::move(patched).error());
  co_return Result<void>();
}

async::Task<Result<void>> EventRecorder::run() {
  while (true) {
    while (!pending_.empty()) {
      std::string identity = std::move(pending_.front());
      pending_.pop_front();
      sending_ = true;
      auto sent = co_await send(identity);
      sending_ = false;
      if (sent) continue;
      if (sent.error().code == Errc::cancelled) co_return sent;
      series_.erase(identity);
      dropped_.add();
      log::warn("event not written", {{"error", sent.error()}});
    }
    FABRIC_CO_CHECK(co_await wake_.wait());
  }
}

}  // namespace fabric::kube
