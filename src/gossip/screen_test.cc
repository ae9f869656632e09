// What a peer sends that would spoil all, or cannot be read, moves nobody: it is left out and counted,
// and what others send is used.

#include "gossip/screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gossip/boxes/boxes_test_support.h"
#include "gossip/boxes/peer_boxes.h"
#include "gossip/mail_test_support.h"

namespace cohort::gossip {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// What a peer sends that must move nobody, beside a good message of another one.
struct Unusable {
  const char* what;
  double weight = 0.5;
  double age = 0;
  double rates = 0.25;
  float value = 1;

  // Gradients have no age, and models no rates.
  bool of_models() const { return age != 0; }
  bool of_gradients() const { return rates != 0.25 || (weight == 0 && age == 0); }
};

const std::vector<Unusable> kUnusable = {
    {.what = "a value", .value = kNan},
    {.what = "a heavy one", .weight = 1e30},
    {.what = "a weight below none", .weight = -1},
    {.what = "a weight that is none", .weight = kNan},
    {.what = "an age that is none", .age = kInfinite},
    {.what = "an age below none", .age = -1},
    {.what = "an age beyond the job", .age = 3 * kJobSteps},
    {.what = "no weight, and so old that no other has any", .weight = 0, .age = 1e300},
    {.what = "rates that are none", .rates = kInfinite},
    {.what = "rates below none", .rates = -0.25},
    {.what = "rates of no job", .rates = 1e300},
    {.what = "rates of no pieces", .weight = 0}};

/// A message as a codec has it, with `bad.value` in it as it is.
std::vector<std::byte> message_with(const std::string& codec, const Unusable& bad) {
  Floats values = random_floats(1);
  if (codec == "none") {
    values[7] = bad.value;
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }
  const MailOptions options = mail_options(codec, Topology::all, 1, 3);
  const auto made = compression::make_codec(options.compression, options.shape, kMailSeed);
  std::vector<std::byte> message(made->max_bytes());
  message.resize(made->encode(values, message));
  if (std::isnan(bad.value)) std::fill_n(message.begin(), 2, std::byte{0xFF});  // A NaN of fp16.
  return message;
}

TEST(ParameterMail, LeavesOutModelsThatWouldSpoilAll) {
  for (const std::string codec : {"none", "fp16"}) {
    for (const Unusable& bad : kUnusable) {
      if (bad.of_gradients()) continue;
      SCOPED_TRACE(codec + ", " + bad.what);
      Floats own = random_floats(0);
      ParameterMail mail(mail_options(codec, Topology::all, 0, 3), own);
      BoxesGroup group(true, 3, {.topology = Topology::all, .message_bytes = mail.message_bytes()});
      const auto message = message_with(codec, bad);
      group.of(1).put(0, {.weight = bad.weight, .message = message, .age = bad.age},
                      WhenFull::replace);
      mail.merge(group.of(0), own);
      EXPECT_EQ(own, random_floats(0));
      EXPECT_EQ(mail.age(), 0);
      EXPECT_EQ(mail.left_out(), 1);
      // A weight that can be one is not lost to the run.
      EXPECT_DOUBLE_EQ(mail.weight(), bad.weight == 0.5 ? 1.5 : 1);

      const auto good = message_with(codec, {.what = "good"});
      group.of(2).put(0, {.weight = 0.5, .message = good}, WhenFull::replace);
      mail.merge(group.of(0), own);
      EXPECT_NE(own, random_floats(0));
      for (const float value : own) EXPECT_TRUE(std::isfinite(value));
      EXPECT_EQ(mail.left_out(), 1);
    }
  }
}

// As far ahead as a model can be, and without any weight: it must not be that nothing has any.
TEST(ParameterMail, AModelWithoutWeightMovesNobodyHoweverOldItIs) {
  for (const std::string codec : {"none", "fp16", "topk"}) {
    SCOPED_TRACE(codec);
    Floats own = random_floats(0);
    ParameterMail mail(mail_options(codec, Topology::all, 0, 3), own);
    BoxesGroup group(true, 3, {.topology = Topology::all, .message_bytes = 4096});
    const auto message = message_with(codec, {.what = "good"});
    group.of(1).put(0, {.weight = 0, .message = message, .age = 2 * kJobSteps}, WhenFull::replace);
    mail.merge(group.of(0), own);
    EXPECT_EQ(own, random_floats(0));
    EXPECT_EQ(mail.age(), 0);
    EXPECT_EQ(mail.left_out(), 0);
  }
}

// What comes again and again must not make a worker's own weight one that others leave out.
TEST(ParameterMail, NobodyGetsMoreWeightThanAllHave) {
  Floats own = random_floats(0);
  ParameterMail mail(mail_options("none", Topology::all, 0, 3), own);
  BoxesGroup group(true, 3, {.topology = Topology::all, .message_bytes = mail.message_bytes()});
  for (int turn = 0; turn < 10; ++turn) {
    group.of(1).put(0, {.weight = 3, .message = std::as_bytes(std::span(own))}, WhenFull::replace);
    mail.merge(group.of(0), own);
  }
  EXPECT_EQ(mail.left_out(), 0);
  EXPECT_LT(mail.weight(), 3.1);
}

TEST(GradientMail, LeavesOutGradientsThatWouldSpoilAll) {
  for (const std::string codec : {"none", "fp16"}) {
    for (const Unusable& bad : kUnusable) {
      if (bad.of_models()) continue;
      SCOPED_TRACE(codec + ", " + bad.what);
      GradientMail mail(mail_options(codec, Topology::all, 0, 3));
      BoxesGroup group(true, 3, {.topology = Topology::all, .message_bytes = mail.message_bytes()});
      const auto message = message_with(codec, bad);
      const auto good = message_with(codec, {.what = "good"});
      group.of(1).put(0, {.weight = bad.weight, .message = message, .rates = bad.rates},
                      WhenFull::refuse);
      group.of(2).put(0, {.weight = 1, .message = good, .rates = 0.25}, WhenFull::refuse);
      Floats sum(kMailFloats);
      const Pieces pieces = mail.collect(group.of(0), sum);
      EXPECT_DOUBLE_EQ(pieces.count, 1);
      EXPECT_DOUBLE_EQ(pieces.rates, 0.25);
      for (std::size_t i = 8; i < kMailFloats; ++i) EXPECT_NEAR(sum[i], random_floats(1)[i], 1e-3);
      EXPECT_EQ(mail.left_out(), 1);
    }
  }
}

/// Of every codec: a message that ends too early, is too long, or is none at all.
std::vector<std::vector<std::byte>> unreadable(const std::string& codec) {
  const auto whole = message_with(codec, {.what = "good"});
  std::vector<std::vector<std::byte>> all = {{}, {std::byte{1}}, whole, whole};
  all[2].resize(whole.size() / 2);
  all[3].resize(whole.size() + 4);
  return all;
}

// Its sender's fault: the reader goes on, with what it has and with what others send.
TEST(ParameterMail, LeavesOutWhatCannotBeRead) {
  for (const std::string& codec : ParameterMail::codecs()) {
    for (const auto& message : unreadable(codec)) {
      SCOPED_TRACE(codec + ", " + std::to_string(message.size()));
      Floats own = random_floats(0);
      ParameterMail mail(mail_options(codec, Topology::all, 0, 3), own);
      BoxesGroup group(true, 3, {.topology = Topology::all, .message_bytes = 4096});
      group.of(1).put(0, {.weight = 0.5, .message = message}, WhenFull::replace);
      mail.merge(group.of(0), own);
      EXPECT_EQ(own, random_floats(0));
      EXPECT_EQ(mail.left_out(), 1);
      EXPECT_DOUBLE_EQ(mail.weight(), 1.5);
    }
  }
}

TEST(GradientMail, LeavesOutWhatCannotBeRead) {
  for (const compression::CodecRow& row : compression::codec_table()) {
    const std::string codec = row.name;
    for (const auto& message : unreadable(codec)) {
      SCOPED_TRACE(codec + ", " + std::to_string(message.size()));
      GradientMail mail(mail_options(codec, Topology::all, 0, 3));
      BoxesGroup group(true, 3, {.topology = Topology::all, .message_bytes = 4096});
      const auto good = message_with(codec, {.what = "good"});
      group.of(1).put(0, {.weight = 1, .message = message, .rates = 0.25}, WhenFull::refuse);
      group.of(2).put(0, {.weight = 1, .message = good, .rates = 0.25}, WhenFull::refuse);
      Floats sum(kMailFloats);
      EXPECT_DOUBLE_EQ(mail.collect(group.of(0), sum).count, 1);
      EXPECT_EQ(mail.left_out(), 1);
    }
  }
}

}  // namespace
}  // namespace cohort::gossip
