#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cohort::bench {

/// Plots of a few curves, as SVG pictures. For strategies.svg of `cohort bench strategies`.

/// One line of a plot. Its colour and dashes follow from its place among the others.
struct Curve {
  std::string label;
  std::vector<std::pair<double, double>> points;
};

/// One pair of axes.
struct Panel {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  bool log_y = false;
  std::vector<Curve> curves;  ///< Every panel of a plot has the same ones, in the same order.
};

/// The panels side by side with one legend, as an SVG picture. Every panel's axes reach from the
/// smallest to the largest value it shows. Written by hand: a few lines and texts need no library,
/// and none of Debian's for C++ writes SVG without a display or a daemon.
std::string to_svg(const std::string& title, const std::vector<Panel>& panels);

}  // namespace cohort::bench
