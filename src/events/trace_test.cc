// Traces as a viewer sees them: the file is parsed as JSON, and its events are compared with what
// was recorded.

#include "events/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/files.h"

namespace cohort::events {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;

constexpr Clock::time_point kOrigin{std::chrono::hours(1)};

TraceRecorder::Span span(TraceStream stream, const std::string& name, int begin, int end) {
  return {stream, name, kOrigin + microseconds(begin), kOrigin + microseconds(end), 3};
}

Json trace_of(const std::vector<std::string>& fragments) {
  const TemporaryFolder folder;
  write_trace(folder.path() / "trace.json", fragments);
  return Json::parse(read_file(folder.path() / "trace.json"));
}

std::vector<Json> events_of(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

TEST(Trace, HoldsSpansInMicrosecondsOfTheCommonOrigin) {
  TraceRecorder recorder;
  auto forward = span(TraceStream::compute, "forward \"1\"", 10, 25);
  forward.end += std::chrono::nanoseconds(500);
  recorder.record(forward);
  const Json event = events_of(trace_of({recorder.to_json_events(2, kOrigin)}), "X").at(0);
  EXPECT_EQ(event.at("name"), "forward \"1\"");
  EXPECT_EQ(event.at("pid"), 2);
  EXPECT_EQ(event.at("cat"), "compute");
  EXPECT_DOUBLE_EQ(event.at("ts").get<double>(), 10);
  EXPECT_DOUBLE_EQ(event.at("dur").get<double>(), 15.5);
  EXPECT_EQ(event.at("args").at("step"), 3);
}

TEST(Trace, NamesRanksAndStreams) {
  TraceRecorder one, two;
  one.record(span(TraceStream::compute, "forward", 0, 1));
  one.record(span(TraceStream::data, "batch", 0, 1));
  two.record(span(TraceStream::communication, "reduce", 0, 1));
  const Json trace = trace_of({one.to_json_events(0, kOrigin), two.to_json_events(1, kOrigin)});
  std::set<std::pair<int, std::string>> names;
  for (const Json& event : events_of(trace, "M")) {
    if (event.at("args").contains("name")) names.emplace(event.at("pid"), event["args"]["name"]);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre(std::pair(0, "rank 0"), std::pair(0, "compute"),
                                                   std::pair(0, "data"), std::pair(1, "rank 1"),
                                                   std::pair(1, "communication")));
}

TEST(Trace, NothingOverlapsOnOneRow) {
  TraceRecorder recorder;
  for (const int begin : {30, 0, 10, 20, 5}) {
    recorder.record(span(TraceStream::communication, "bucket", begin, begin + 12));
    recorder.record(span(TraceStream::compute, "backward", begin, begin + 5));
  }
  const Json trace = trace_of({recorder.to_json_events(0, kOrigin)});
  const auto spans = events_of(trace, "X");
  ASSERT_EQ(spans.size(), 10u);
  std::map<int, double> reached;
  std::set<std::string> compute_rows;
  for (const Json& event : spans) {
    const int tid = event.at("tid");
    EXPECT_GE(event.at("ts").get<double>(), reached[tid]);
    reached[tid] = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["cat"] == "compute") compute_rows.insert(event["tid"].dump());
  }
  EXPECT_EQ(compute_rows.size(), 1u) << "spans that touch share a row";
  EXPECT_GT(reached.size(), 2u);
}

TEST(Trace, DropsWhatIsTooMuchAndSaysSo) {
  TraceRecorder recorder(2);
  for (int i = 0; i < 5; ++i) recorder.record(span(TraceStream::compute, "step", i, i + 1));
  EXPECT_EQ(recorder.dropped(), 3u);
  const Json trace = trace_of({recorder.to_json_events(0, kOrigin)});
  EXPECT_EQ(events_of(trace, "X").size(), 2u);
  EXPECT_THAT(trace.dump(), testing::HasSubstr("3 spans dropped"));
}

TEST(Trace, ASpanThatEndsBeforeItBeginsHasNoLength) {
  TraceRecorder recorder;
  recorder.record(span(TraceStream::compute, "step", 5, 4));
  const Json trace = trace_of({recorder.to_json_events(0, kOrigin)});
  EXPECT_EQ(events_of(trace, "X").at(0).at("dur").get<double>(), 0);
}

TEST(Trace, OfNobodyIsValidToo) {
  EXPECT_THAT(trace_of({}).at("traceEvents"), testing::IsEmpty());
  EXPECT_THAT(trace_of({"", ""}).at("traceEvents"), testing::IsEmpty());
}

TEST(Trace, ThreadsMayRecordAtOnce) {
  TraceRecorder recorder(1500);
  const auto record_many = [&](TraceStream stream) {
    for (int i = 0; i < 1000; ++i) recorder.record(span(stream, "work", i, i + 1));
  };
  std::thread other(record_many, TraceStream::communication);
  record_many(TraceStream::compute);
  other.join();
  EXPECT_EQ(recorder.dropped(), 500u);
}

}  // namespace
}  // namespace cohort::events
