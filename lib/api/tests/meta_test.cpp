#include <fabric/api/core.hpp>
#include <fabric/api/fabric.hpp>
#include <fabric/api/meta.hpp>

#include <gtest/gtest.h>

namespace fabric::api {
namespace {

TEST(Gvk, GivesApiVersionAndPath) {
  EXPECT_EQ(Node::kGvk.api_version(), "v1");
  EXPECT_EQ(Node::kGvk.path_prefix(), "/api/v1");
  EXPECT_EQ(Fabric::kGvk.api_version(), "operator.tkestack.io/v1alpha1");
  EXPECT_EQ(Fabric::kGvk.path_prefix(), "/apis/operator.tkestack.io/v1alpha1");
}

TEST(Meta, RoundTripsAndTreatsNullTimestampsAsAbsent) {
  const std::string text =
      R"({"annotations":{"a":"b"},"creationTimestamp":"2024-02-29T12:34:56Z","finalizers":["f/x"],"generation":3,)"
      R"("labels":{"l":"m"},"name":"n","namespace":"s","ownerReferences":[{"apiVersion":"v1","controller":true,)"
      R"("kind":"Node","name":"o","uid":"u"}],"resourceVersion":"12","uid":"id"})";
  const auto meta = json::decode<ObjectMeta>(text);
  ASSERT_TRUE(meta) << meta.error().context;
  EXPECT_EQ(json::encode(*meta), text);
  EXPECT_TRUE(meta->has_finalizer("f/x"));
  EXPECT_FALSE(meta->has_finalizer("f/y"));
  ASSERT_NE(meta->label("l"), nullptr);
  EXPECT_EQ(*meta->label("l"), "m");
  EXPECT_EQ(meta->annotation("l"), nullptr);
  EXPECT_EQ(object_key(*meta), "s/n");

  const auto bare = json::decode<ObjectMeta>(R"({"name":"n","creationTimestamp":null})");
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->creation_timestamp);
  EXPECT_EQ(object_key(*bare), "n");
}

TEST(Meta, WritesApiVersionAndKindAndRefusesAnotherKind) {
  ConfigMap map;
  map.metadata.name = "n";
  EXPECT_EQ(json::write(to_object(map)), R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"}})");
  EXPECT_TRUE(from_object<ConfigMap>(to_object(map)));
  EXPECT_TRUE(from_object<ConfigMap>(json::to_value(map)));
  EXPECT_FALSE(from_object<Pod>(to_object(map)));
}

TEST(List, ReadsItemsAndContinuation) {
  const auto list = json::decode<List<Namespace>>(
      R"({"metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":4},"items":[{"metadata":{"name":"a"}}]})");
  ASSERT_TRUE(list) << list.error().context;
  EXPECT_EQ(list->metadata.continue_token, "c");
  EXPECT_EQ(list->metadata.remaining_item_count, 4);
  ASSERT_EQ(list->items.size(), 1U);
  EXPECT_EQ(describe(list->items.front()), "Namespace a");
}

TEST(Status, ReadsAnErrorOfTheApiServer) {
  const auto status = json::decode<Status>(
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m","reason":"Conflict",)"
      R"("details":{"name":"x","causes":[{"reason":"FieldValueInvalid","message":"bad","field":"spec.a"}],)"
      R"("retryAfterSeconds":2},"code":409})");
  ASSERT_TRUE(status) << status.error().context;
  EXPECT_EQ(status->code, 409);
  EXPECT_EQ(status->details.retry_after_seconds, 2);
  ASSERT_EQ(status->details.causes.size(), 1U);
  EXPECT_EQ(status->details.causes.front().field, "spec.a");
}

}  // namespace
}  // namespace fabric::api
