#pragma once

#include <fabric/api/core.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/client.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// What every API server does that our programs rely on. The same tests run against FakeApiServer and against a real
/// kube-apiserver, which keeps the fake honest. A Driver has `Client& client()`, `std::string ns()` (a namespace of its
/// own for each test) and `Result<T> run(Task<Result<T>>)`.
namespace fabric::kube::fake {

inline const ResourceId kConfigMaps{"", "v1", "ConfigMap", "configmaps", true};
inline const ResourceId kNamespaces{"", "v1", "Namespace", "namespaces", false};
inline const ResourceId kServices{"", "v1", "Service", "services", true};

/// The harness serves this kind without a watch cache, so that compacting etcd forgets its past.
inline const ResourceId kLeases{"coordination.k8s.io", "v1", "Lease", "leases", true};

inline json::Value lease(const std::string& ns, const std::string& name) {
  return json::Object{{"metadata", json::Object{{"name", name}, {"namespace", ns}}}, {"spec", json::Object{}}};
}

inline json::Value config_map(const std::string& ns, const std::string& name, json::Object content = {}) {
  return json::Object{{"metadata", json::Object{{"name", name}, {"namespace", ns}}}, {"data", std::move(content)}};
}

template <class Driver>
class ApiContract : public testing::Test {
 protected:
  Client& client() { return driver_.client(); }

  template <class T>
  Result<T> run(async::Task<Result<T>> task) {
    return driver_.run(std::move(task));
  }

  /// The value, or a failed test and an empty one.
  template <class T>
  T get(async::Task<Result<T>> task) {
    auto result = run(std::move(task));
    if (result) return *std::move(result);
    ADD_FAILURE() << result.error().message();
    return T{};
  }

  template <class T>
  Error error(async::Task<Result<T>> task) {
    auto result = run(std::move(task));
    if (!result) return result.error();
    ADD_FAILURE() << "succeeded";
    return Error{};
  }

  /// Reads until `count` events that are no bookmarks are there.
  std::vector<WatchEvent> read(WatchStream& stream, std::size_t count) {
    std::vector<WatchEvent> out;
    while (out.size() < count) {
      auto events = run(stream.read());
      if (!events || events->empty()) {
        ADD_FAILURE() << (events ? "the watch ended" : events.error().message());
        break;
      }
      for (WatchEvent& event : *events) {
        if (event.type != WatchType::bookmark) out.push_back(std::move(event));
      }
    }
    return out;
  }

  Driver driver_;
  const std::string ns_ = driver_.ns();
};

TYPED_TEST_SUITE_P(ApiContract);

TYPED_TEST_P(ApiContract, CreatesReadsUpdatesAndRemoves) {
  const ObjectKey key{this->ns_, "a"};
  json::Value made = this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a", {{"x", "1"}})));
  EXPECT_FALSE(resource_version_of(made).empty());
  EXPECT_FALSE(made.string_at({"metadata", "uid"}).empty());

  made["data"]["x"] = "2";
  const json::Value updated = this->get(this->client().update(kConfigMaps, made));
  EXPECT_NE(resource_version_of(updated), resource_version_of(made));
  EXPECT_EQ(this->get(this->client().get(kConfigMaps, key)).string_at({"data", "x"}), "2");

  EXPECT_TRUE(this->run(this->client().remove(kConfigMaps, key)));
  EXPECT_EQ(this->error(this->client().get(kConfigMaps, key)).code, Errc::not_found);
  EXPECT_EQ(this->error(this->client().remove(kConfigMaps, key)).code, Errc::not_found);
}

TYPED_TEST_P(ApiContract, RefusesASecondCreation) {
  this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a")));
  const Error error = this->error(this->client().create(kConfigMaps, config_map(this->ns_, "a")));
  EXPECT_EQ(error.code, Errc::already_exists);
  EXPECT_NE(error.message().find("create ConfigMap " + this->ns_ + "/a"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("already exists"), std::string::npos) << error.message();
}

TYPED_TEST_P(ApiContract, RefusesAnUpdateOfAnOldVersion) {
  const json::Value first = this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a")));
  json::Value second = first;
  second["data"] = json::Object{{"x", "1"}};
  this->get(this->client().update(kConfigMaps, second));
  json::Value third = first;
  third["data"] = json::Object{{"x", "2"}};
  EXPECT_EQ(this->error(this->client().update(kConfigMaps, third)).code, Errc::conflict);
}

TYPED_TEST_P(ApiContract, KeepsTheVersionWhenNothingChanges) {
  const json::Value made = this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a", {{"x", "1"}})));
  const json::Value same = this->get(this->client().update(kConfigMaps, made));
  EXPECT_EQ(resource_version_of(same), resource_version_of(made));
  const ApplyOptions options{.field_manager = "m", .force = false};
  const json::Value applied =
      this->get(this->client().apply(kConfigMaps, config_map(this->ns_, "b", {{"x", "1"}}), options));
  const json::Value again =
      this->get(this->client().apply(kConfigMaps, config_map(this->ns_, "b", {{"x", "1"}}), options));
  EXPECT_EQ(resource_version_of(again), resource_version_of(applied));
}

TYPED_TEST_P(ApiContract, MergesPatchesAndRemovesByNull) {
  const ObjectKey key{this->ns_, "a"};
  this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a", {{"x", "1"}, {"y", "2"}})));
  const json::Value patched = this->get(
      this->client().merge_patch(kConfigMaps, key, json::Object{{"data", json::Object{{"x", nullptr}, {"z", "3"}}}}));
  EXPECT_EQ(*patched.find("data"), json::Value(json::Object{{"y", "2"}, {"z", "3"}}));
  EXPECT_EQ(this->error(this->client().merge_patch(kConfigMaps, {this->ns_, "none"}, json::Object{})).code,
            Errc::not_found);
}

TYPED_TEST_P(ApiContract, ApplyKeepsTheFieldsOfOthersAndRemovesItsOwn) {
  const auto apply = [&](const char* manager, json::Object content) {
    return this->get(this->client().apply(kConfigMaps, config_map(this->ns_, "a", std::move(content)),
                                          {.field_manager = manager, .force = false}));
  };
  apply("one", {{"a", "1"}, {"b", "2"}});
  apply("two", {{"c", "3"}});
  const json::Value now = apply("one", {{"b", "2"}});
  EXPECT_EQ(*now.find("data"), json::Value(json::Object{{"b", "2"}, {"c", "3"}}));
}

TYPED_TEST_P(ApiContract, ApplyConflictsNameTheOwnerUntilForced) {
  const auto apply = [&](const char* manager, const char* value, bool force) {
    return this->client().apply(kConfigMaps, config_map(this->ns_, "a", {{"x", value}}),
                                {.field_manager = manager, .force = force});
  };
  this->get(apply("one", "1", false));
  const Error error = this->error(apply("two", "2", false));
  EXPECT_EQ(error.code, Errc::conflict);
  EXPECT_NE(error.message().find("\"one\""), std::string::npos) << error.message();
  EXPECT_NE(error.message().find(".data.x"), std::string::npos) << error.message();
  EXPECT_EQ(this->get(apply("two", "2", true)).string_at({"data", "x"}), "2");
  EXPECT_EQ(this->error(apply("one", "1", false)).code, Errc::conflict);
}

TYPED_TEST_P(ApiContract, StatusIsWrittenOnlyThroughItsSubresource) {
  const ObjectKey key{this->ns_, "s"};
  const auto service = [&](const char* address) {
    json::Value out = json::Object{{"metadata", json::Object{{"name", "s"}, {"namespace", this->ns_}}}};
    out["spec"]["type"] = "LoadBalancer";
    out["spec"]["ports"].push_back(json::Object{{"port", 80}, {"protocol", "TCP"}});
    out["status"]["loadBalancer"]["ingress"].push_back(json::Object{{"ip", address}});
    return out;
  };
  const auto ingress = [&] {
    const json::Value now = this->get(this->client().get(kServices, key));
    return now.string_at({"status", "loadBalancer", "ingress", "0", "ip"});
  };
  this->get(this->client().create(kServices, service("192.0.2.1")));
  EXPECT_EQ(ingress(), "");

  json::Value only = service("192.0.2.2");
  only.if_object()->erase("spec");
  this->get(this->client().apply_status(kServices, only, {.field_manager = "m", .force = false}));
  EXPECT_EQ(ingress(), "192.0.2.2");
  EXPECT_TRUE(this->get(this->client().get(kServices, key)).at({"spec", "ports", "0"}) != nullptr);

  json::Value patch;
  patch["status"]["loadBalancer"]["ingress"].push_back(json::Object{{"ip", "192.0.2.3"}});
  this->get(this->client().patch_status(kServices, key, patch));
  EXPECT_EQ(ingress(), "192.0.2.3");
}

TYPED_TEST_P(ApiContract, ListsInPagesAndBySelector) {
  for (int i = 0; i < 5; ++i) {
    json::Value object = config_map(this->ns_, fmt::format("c{}", i));
    object["metadata"]["labels"] = json::Object{{"even", i % 2 == 0 ? "yes" : "no"}};
    this->get(this->client().create(kConfigMaps, object));
  }
  const Selection labelled{this->ns_, "even in (yes,no)", ""};
  Page page = this->get(this->client().list_page(kConfigMaps, labelled, {.limit = 2, .continue_token = {}}));
  ASSERT_EQ(page.items.size(), 2U);
  std::vector<std::string> names;
  while (true) {
    for (const json::Value& item : page.items)
      names.push_back(key_of(item).name);
    if (page.continue_token.empty()) break;
    page =
        this->get(this->client().list_page(kConfigMaps, labelled, {.limit = 2, .continue_token = page.continue_token}));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"c0", "c1", "c2", "c3", "c4"}));
  const auto count = [&](const char* labels, const char* fields) {
    return this->get(this->client().list(kConfigMaps, {this->ns_, labels, fields})).items.size();
  };
  EXPECT_EQ(count("even=yes", ""), 3U);
  EXPECT_EQ(count("even,even!=yes", ""), 2U);
  EXPECT_EQ(count("", "metadata.name=c3"), 1U);
  EXPECT_EQ(count("even=no", "metadata.name=c2"), 0U);
}

TYPED_TEST_P(ApiContract, WatchesFromAVersionInOrder) {
  this->get(this->client().create(kConfigMaps, config_map(this->ns_, "before")));
  const auto listed = this->get(this->client().list(kConfigMaps, {this->ns_, "", ""}));
  this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a", {{"x", "1"}})));
  auto stream = this->get(
      this->client().watch(kConfigMaps, {this->ns_, "", ""}, {listed.resource_version, std::chrono::seconds(60)}));
  ASSERT_NE(stream, nullptr);
  this->get(
      this->client().merge_patch(kConfigMaps, {this->ns_, "a"}, json::Object{{"data", json::Object{{"x", "2"}}}}));
  ASSERT_TRUE(this->run(this->client().remove(kConfigMaps, {this->ns_, "a"})));

  const auto events = this->read(*stream, 3);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].type, WatchType::added);
  EXPECT_EQ(events[0].object.string_at({"data", "x"}), "1");
  EXPECT_EQ(events[1].type, WatchType::modified);
  EXPECT_EQ(events[1].object.string_at({"data", "x"}), "2");
  EXPECT_EQ(events[2].type, WatchType::deleted);
  EXPECT_EQ(key_of(events[2].object).name, "a");
}

TYPED_TEST_P(ApiContract, AWatchBySelectorSeesObjectsComeAndGo) {
  const auto label = [&](const char* value) {
    return json::Object{{"metadata", json::Object{{"labels", json::Object{{"role", value}}}}}};
  };
  this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a")));
  const auto listed = this->get(this->client().list(kConfigMaps, {this->ns_, "role=gateway", ""}));
  EXPECT_TRUE(listed.items.empty());
  auto stream = this->get(this->client().watch(kConfigMaps, {this->ns_, "role=gateway", ""},
                                               {listed.resource_version, std::chrono::seconds(60)}));
  ASSERT_NE(stream, nullptr);
  this->get(this->client().merge_patch(kConfigMaps, {this->ns_, "a"}, label("gateway")));
  this->get(this->client().merge_patch(kConfigMaps, {this->ns_, "a"}, label("worker")));
  const auto events = this->read(*stream, 2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].type, WatchType::added);
  EXPECT_EQ(events[1].type, WatchType::deleted);
}

TYPED_TEST_P(ApiContract, AWatchFromAForgottenVersionIsGone) {
  this->get(this->client().create(kLeases, lease(this->ns_, "a")));
  this->driver_.forget_the_past();
  auto stream = this->run(this->client().watch(kLeases, {this->ns_, "", ""}, {"1", std::chrono::seconds(60)}));
  // Either the request is refused or the first event says so.
  if (!stream) {
    EXPECT_EQ(stream.error().code, Errc::gone) << stream.error().message();
    return;
  }
  const Error error = this->error((*stream)->read());
  EXPECT_EQ(error.code, Errc::gone) << error.message();
}

TYPED_TEST_P(ApiContract, AContinueTokenOfAForgottenVersionIsGone) {
  for (const char* name : {"a", "b", "c"})
    this->get(this->client().create(kLeases, lease(this->ns_, name)));
  const Selection all{this->ns_, "", ""};
  const Page page = this->get(this->client().list_page(kLeases, all, {.limit = 1, .continue_token = {}}));
  ASSERT_FALSE(page.continue_token.empty());
  this->get(this->client().create(kLeases, lease(this->ns_, "d")));
  this->driver_.forget_the_past();
  const Error error =
      this->error(this->client().list_page(kLeases, all, {.limit = 1, .continue_token = page.continue_token}));
  EXPECT_EQ(error.code, Errc::gone) << error.message();
}

TYPED_TEST_P(ApiContract, FinalizersDelayTheEnd) {
  const ObjectKey key{this->ns_, "a"};
  json::Value object = config_map(this->ns_, "a");
  object["metadata"]["finalizers"] = json::array("fabric.tkestack.io/test");
  this->get(this->client().create(kConfigMaps, object));
  EXPECT_TRUE(this->run(this->client().remove(kConfigMaps, key)));
  EXPECT_NE(this->get(this->client().get(kConfigMaps, key)).string_at({"metadata", "deletionTimestamp"}), "");
  this->get(
      this->client().merge_patch(kConfigMaps, key, json::Object{{"metadata", json::Object{{"finalizers", nullptr}}}}));
  EXPECT_EQ(this->error(this->client().get(kConfigMaps, key)).code, Errc::not_found);
}

TYPED_TEST_P(ApiContract, RemovesOnlyWhatThePreconditionsName) {
  const ObjectKey key{this->ns_, "a"};
  const json::Value made = this->get(this->client().create(kConfigMaps, config_map(this->ns_, "a")));
  const auto remove = [&](RemoveOptions options) {
    return this->client().remove(kConfigMaps, key, std::move(options));
  };
  RemoveOptions other_uid;
  other_uid.uid = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(this->error(remove(other_uid)).code, Errc::conflict);
  RemoveOptions old;
  old.resource_version = "1";
  EXPECT_EQ(this->error(remove(old)).code, Errc::conflict);
  RemoveOptions exact;
  exact.uid = made.string_at({"metadata", "uid"});
  exact.resource_version = resource_version_of(made);
  EXPECT_TRUE(this->run(remove(exact)));
}

TYPED_TEST_P(ApiContract, ReadsAndWritesTypedObjects) {
  api::ConfigMap object;
  object.metadata.ns = this->ns_;
  object.metadata.name = "typed";
  object.data["k"] = "v";
  const auto made = this->get(this->client().create(object));
  EXPECT_EQ(made.data, object.data);
  EXPECT_FALSE(made.metadata.uid.empty());
  EXPECT_EQ(this->get(this->client().template get<api::ConfigMap>({this->ns_, "typed"})), made);
  const auto list = this->get(this->client().template list<api::ConfigMap>({this->ns_, "", "metadata.name=typed"}));
  ASSERT_EQ(list.items.size(), 1U);
  EXPECT_EQ(list.items[0], made);
  EXPECT_TRUE(this->run(this->client().template remove<api::ConfigMap>({this->ns_, "typed"})));
}

TYPED_TEST_P(ApiContract, AnUnknownKindIsNotFound) {
  const ResourceId unknown{"", "v0", "Nothing", "nothings", true};
  if (this->driver_.knows_kinds())
    EXPECT_EQ(this->error(this->client().list(unknown, {this->ns_, "", ""})).code, Errc::not_found);
  else
    EXPECT_TRUE(this->get(this->client().list(unknown, {this->ns_, "", ""})).items.empty());
}

REGISTER_TYPED_TEST_SUITE_P(ApiContract, CreatesReadsUpdatesAndRemoves, RefusesASecondCreation,
                            RefusesAnUpdateOfAnOldVersion, KeepsTheVersionWhenNothingChanges,
                            MergesPatchesAndRemovesByNull, ApplyKeepsTheFieldsOfOthersAndRemovesItsOwn,
                            ApplyConflictsNameTheOwnerUntilForced, StatusIsWrittenOnlyThroughItsSubresource,
                            ListsInPagesAndBySelector, WatchesFromAVersionInOrder, AWatchBySelectorSeesObjectsComeAndGo,
                            AWatchFromAForgottenVersionIsGone, AContinueTokenOfAForgottenVersionIsGone,
                            FinalizersDelayTheEnd, RemovesOnlyWhatThePreconditionsName, ReadsAndWritesTypedObjects,
                            AnUnknownKindIsNotFound);

}  // namespace fabric::kube::fake
