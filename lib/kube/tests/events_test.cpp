#include <fabric/api/event.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/kube/events.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace fabric::kube {
namespace {

class Events : public testing::Test {
 protected:
  Events() { loop_.group().spawn("events", recorder_.run()); }

  ~Events() override {
    loop_.group().stop();
    loop_.settle();
  }

  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  static EventOptions options() {
    EventOptions out{.controller = "fabric.tkestack.io/test", .instance = "test-1"};
    out.burst = 3;
    return out;
  }

  void record(const std::string& note) {
    recorder_.record({"v1", "Node", "", "n", "", ""}, EventKind::warning, "Lost", "Probe", note);
    loop_.settle();
  }

  std::vector<api::Event> written() {
    const auto list = loop_.run(client_->list<api::Event>());
    EXPECT_TRUE(list) << list.error().message();
    return list ? list->items : std::vector<api::Event>();
  }

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  fake::FakeApiServer server_{loop_.executor(), loop_.clock()};
  std::unique_ptr<Client> client_ = server_.client(metrics_);
  EventRecorder recorder_{*client_, loop_.executor(), loop_.clock(), metrics_, options()};
};

TEST_F(Events, CarryWhatTheServerRequires) {
  record("no answer");
  const auto events = written();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].metadata.ns, "default") << "a Node has no namespace";
  EXPECT_EQ(events[0].regarding.name, "n");
  EXPECT_EQ(events[0].type, "Warning");
  EXPECT_EQ(events[0].reason, "Lost");
  EXPECT_EQ(events[0].action, "Probe");
  EXPECT_EQ(events[0].reporting_controller, "fabric.tkestack.io/test");
  EXPECT_EQ(events[0].reporting_instance, "test-1");
  EXPECT_FALSE(events[0].series);
}

TEST_F(Events, RepeatsRaiseTheCountOfOneSeries) {
  record("no answer");
  record("no answer");
  loop_.clock().advance(std::chrono::minutes(5));
  record("no answer");
  const auto events = written();
  ASSERT_EQ(events.size(), 1U);
  ASSERT_TRUE(events[0].series);
  EXPECT_EQ(events[0].series->count, 3);
}

TEST_F(Events, ALongPauseBeginsANewEvent) {
  record("no answer");
  loop_.clock().advance(std::chrono::minutes(6));
  record("no answer");
  EXPECT_EQ(written().size(), 2U);
}

TEST_F(Events, BeyondTheRateAreDroppedAndCountedUntilTimePasses) {
  for (int i = 0; i < 5; ++i)
    record("note " + std::to_string(i));
  EXPECT_EQ(written().size(), 3U);
  EXPECT_NE(metrics_.render().find("fabric_events_dropped_total 2"), std::string::npos) << metrics_.render();
  loop_.clock().advance(std::chrono::seconds(2));
  record("later");
  EXPECT_EQ(written().size(), 4U);
}

TEST_F(Events, AServerThatRefusesDoesNotStopTheRecorder) {
  server_.fail_next(1, 403);
  record("first");
  record("second");
  const auto events = written();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].note, "second");
}

TEST_F(Events, NotesAreCutAtOneKibibyte) {
  record(std::string(1023, 'x') + "\xC3\xA4");
  ASSERT_EQ(written().size(), 1U);
  EXPECT_EQ(written()[0].note, std::string(1021, 'x') + "...");
}

TEST(CutText, NeverCutsACharacter) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abcdef", 5), "ab...");
  EXPECT_EQ(cut_text("a\xC3\xA4\xC3\xA4\xC3\xA4", 6), "a\xC3\xA4...");
  EXPECT_EQ(cut_text("a\xC3\xA4\xC3\xA4\xC3\xA4", 5), "a...");
  EXPECT_EQ(cut_text("abcdef", 2), "..");
}

}  // namespace
}  // namespace fabric::kube
