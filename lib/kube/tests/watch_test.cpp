#include <fabric/kube/watch.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fabric::kube {
namespace {

std::string frame(const std::string& type, const std::string& name) {
  return R"({"type":")" + type + R"(","object":{"metadata":{"name":")" + name + "\"}}}\n";
}

struct Outcome {
  std::vector<std::string> events;
  Errc error = Errc::internal;
  bool failed = false;
};

Outcome decode(const std::string& text, std::size_t chunk, std::size_t limit = WatchDecoder::kMaxFrame) {
  WatchDecoder decoder(limit);
  std::vector<WatchEvent> events;
  Outcome out;
  for (std::size_t at = 0; at < text.size(); at += chunk) {
    const auto fed = decoder.feed(std::string_view(text).substr(at, chunk), events);
    if (fed) continue;
    out.failed = true;
    out.error = fed.error().code;
    break;
  }
  for (const auto& event : events)
    out.events.push_back(std::string(to_string(event.type)) + " " + event.object.string_at({"metadata", "name"}));
  return out;
}

TEST(WatchDecoder, GivesTheSameEventsWhateverTheChunks) {
  const std::string text =
      frame("ADDED", "a") + "\n" + frame("MODIFIED", "b") + frame("DELETED", "c") + frame("BOOKMARK", "");
  const std::vector<std::string> expected{"ADDED a", "MODIFIED b", "DELETED c", "BOOKMARK "};
  for (std::size_t chunk = 1; chunk <= text.size(); ++chunk) {
    const Outcome outcome = decode(text, chunk);
    EXPECT_FALSE(outcome.failed) << "chunks of " << chunk;
    EXPECT_EQ(outcome.events, expected) << "chunks of " << chunk;
  }
}

TEST(WatchDecoder, AnErrorEventEndsTheStreamAfterWhatCameBefore) {
  const std::string gone =
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})";
  const Outcome outcome = decode(frame("ADDED", "a") + gone + "\n" + frame("ADDED", "b"), 1000);
  EXPECT_TRUE(outcome.failed);
  EXPECT_EQ(outcome.error, Errc::gone);
  EXPECT_EQ(outcome.events, (std::vector<std::string>{"ADDED a"}));
}

TEST(WatchDecoder, RefusesWhatIsNoEvent) {
  for (const char* bad : {"{", "[]", "{}", R"({"type":"ADDED"})", R"({"type":"ADDED","object":1})",
                          R"({"type":"NEW","object":{}})", R"({"type":1,"object":{}})"}) {
    const Outcome outcome = decode(std::string(bad) + "\n", 1000);
    EXPECT_TRUE(outcome.failed) << bad;
    EXPECT_EQ(outcome.error, Errc::invalid) << bad;
  }
}

TEST(WatchDecoder, BoundsTheSizeOfAFrameAlsoWithoutItsEnd) {
  const std::string event = frame("ADDED", std::string(100, 'x'));
  EXPECT_FALSE(decode(event, 10, event.size() - 1).failed);
  EXPECT_TRUE(decode(event, 10, event.size() - 2).failed);
  EXPECT_TRUE(decode(std::string(101, ' '), 1, 100).failed);
}

TEST(WatchDecoder, KnowsWhetherAnEventIsIncomplete) {
  WatchDecoder decoder;
  std::vector<WatchEvent> events;
  EXPECT_TRUE(decoder.at_boundary());
  ASSERT_TRUE(decoder.feed("{", events));
  EXPECT_FALSE(decoder.at_boundary());
}

}  // namespace
}  // namespace fabric::kube
