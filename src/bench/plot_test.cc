#include "bench/plot.h"

#include <gmock/gmock.h>

#include <limits>

/// Places are read from the text of the picture.

namespace cohort::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Panel panel_of(std::vector<std::pair<double, double>> points) {
  return {.title = "loss",
          .x_label = "seconds",
          .y_label = "loss",
          .log_x = false,
          .log_y = false,
          .curves = {{"a < b", std::move(points)}}};
}

TEST(Plot, PutsTheExtremesAtTheCorners) {
  const std::string svg = to_svg("title", {panel_of({{0, 0}, {10, 5}})});
  EXPECT_THAT(svg, HasSubstr("<path d=\"M64.0 376.0L524.0 56.0\""));
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
}

TEST(Plot, LeavesOutWhatCannotBeShown) {
  Panel panel =
      panel_of({{0, 1}, {1, 2}, {10, std::numeric_limits<double>::quiet_NaN()}, {100, 3}});
  panel.log_x = true;
  const std::string svg = to_svg("title", {panel});
  EXPECT_THAT(svg, HasSubstr("M64.0 376.0L524.0 56.0"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Plot, ACurveWithoutPointsIsStillInTheLegend) {
  EXPECT_THAT(to_svg("title", {panel_of({})}), HasSubstr("a &lt; b"));
}

}  // namespace
}  // namespace cohort::bench
