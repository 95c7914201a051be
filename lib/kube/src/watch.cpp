#include <fabric/kube/status.hpp>
#include <fabric/kube/watch.hpp>

#include <utility>

namespace fabric::kube {

std::string_view to_string(WatchType type) {
  switch (type) {
    case WatchType::added:
      return "ADDED";
    case WatchType::modified:
      return "MODIFIED";
    case WatchType::deleted:
      return "DELETED";
    case WatchType::bookmark:
      return "BOOKMARK";
  }
  return {};
}

Result<WatchEvent> decode_watch_event(std::string_view frame) {
  FABRIC_TRY(json::Value document, json::parse(frame).with("watch event"));
  json::Value* object = document.find("object");
  if (object == nullptr || !object->is_object()) return fail(Errc::invalid, "watch event without an object");
  const std::string type = document.string_at({"type"});
  if (type == "ERROR") return std::unexpected(error_of_status(*object, "watch"));
  for (const WatchType known : {WatchType::added, WatchType::modified, WatchType::deleted, WatchType::bookmark}) {
    if (type == to_string(known)) return WatchEvent{known, std::move(*object)};
  }
  return fail(Errc::invalid, "watch event of an unknown type");
}

Result<void> WatchDecoder::feed(std::string_view chunk, std::vector<WatchEvent>& out) {
  while (!chunk.empty()) {
    const std::size_t newline = chunk.find('\n');
    const std::string_view part = chunk.substr(0, newline);
    if (pending_.size() + part.size() > max_frame_)
      return fail(Errc::invalid, "watch event of more than {} bytes", max_frame_);
    if (newline == std::string_view::npos) {
      pending_.append(part);
      return {};
    }
    chunk.remove_prefix(newline + 1);
    if (pending_.empty()) {
      FABRIC_CHECK(finish_frame(part, out));
      continue;
    }
    pending_.append(part);
    const std::string frame = std::exchange(pending_, {});
    FABRIC_CHECK(finish_frame(frame, out));
  }
  return {};
}

Result<void> WatchDecoder::finish_frame(std::string_view frame, std::vector<WatchEvent>& out) const {
  if (frame.find_first_not_of(" \t\r") == std::string_view::npos) return {};
  FABRIC_TRY(WatchEvent event, decode_watch_event(frame));
  out.push_back(std::move(event));
  return {};
}

}  // namespace fabric::kube
