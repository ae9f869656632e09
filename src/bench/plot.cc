#include "bench/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace cohort::bench {
namespace {

// All lengths are in pixels of the picture; y grows downwards.
constexpr double kPanelWidth = 460, kPanelHeight = 320, kLeft = 64, kTop = 56, kGap = 84;
constexpr double kLegendLine = 20;

// Told apart by most people who see colours in another way (after Okabe and Ito), then dashed.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#56b4e9", "#e69f00", "#000000"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string style_of(std::size_t curve) {
  const bool dashed = curve / kColours.size() % 2 == 1;
  return fmt::format(R"(stroke="{}" stroke-width="1.8" fill="none"{})",
                     kColours[curve % kColours.size()], dashed ? R"( stroke-dasharray="6 3")" : "");
}

/// From values to places along one side of a panel. All values that are shown must be included
/// before the first place is asked for: the smallest is at `begin`, the largest `length` further.
class Axis {
 public:
  Axis(bool log, double begin, double length) : log_(log), begin_(begin), length_(length) {}

  void include(double value) {
    if (log_ && value <= 0) return;
    low_ = std::min(low_, on_scale(value));
    high_ = std::max(high_, on_scale(value));
  }

  bool can_show(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

  double place(double value) const {
    const double range = high_ > low_ ? high_ - low_ : 1;
    return begin_ + length_ * (on_scale(value) - low_) / range;
  }

  /// Round numbers within the range. On a logarithmic axis powers of ten, with 2 and 5 times them
  /// where there would be few; otherwise multiples of 2, 5 or 10 times a power of ten, about five
  /// of them.
  std::vector<double> ticks() const {
    std::vector<double> result;
    if (!(high_ >= low_)) return result;
    if (log_) {
      for (double power = std::floor(low_); power <= high_; ++power) {
        for (const double digit : {1.0, 2.0, 5.0}) {
          const double at = power + std::log10(digit);
          const bool few = high_ - low_ < 2.5 || digit == 1;
          if (few && at >= low_ - 1e-9 && at <= high_ + 1e-9) {
            result.push_back(std::pow(10, at));
          }
        }
      }
      return result;
    }
    if (high_ <= low_) return {low_};
    const double rough = (high_ - low_) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough / power < 2 ? 2 * power : rough / power < 5 ? 5 * power : 10 * power;
    for (double tick = std::ceil(low_ / step) * step; tick <= high_; tick += step) {
      result.push_back(std::abs(tick) < step / 1e6 ? 0 : tick);
    }
    return result;
  }

 private:
  double on_scale(double value) const { return log_ ? std::log10(value) : value; }

  bool log_;
  double begin_;
  double length_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

std::string text_at(double x, double y, const std::string& anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

/// The frame, the grid with its numbers, and the three texts of a panel.
std::string axes(const Panel& panel, const Axis& x, const Axis& y, double left) {
  const double bottom = kTop + kPanelHeight;
  std::string svg = fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
      "stroke=\"#888\"/>\n",
      left, kTop, kPanelWidth, kPanelHeight);
  for (const double tick : x.ticks()) {
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/>\n", x.place(tick), kTop,
                       bottom);
    svg += text_at(x.place(tick), bottom + 16, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format("<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#ddd\"/>\n", left, y.place(tick),
                       left + kPanelWidth);
    svg += text_at(left - 6, y.place(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  svg += text_at(left + kPanelWidth / 2, kTop - 10, "middle", panel.title);
  svg += text_at(left + kPanelWidth / 2, bottom + 36, "middle", panel.x_label);
  svg += fmt::format(
      "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      left - 46, kTop + kPanelHeight / 2, escaped(panel.y_label));
  return svg;
}

/// A panel whose left edge is at `left`. Points that the axes cannot show (not finite, or not
/// positive on a logarithmic axis) are left out, and the line goes on from the next.
std::string draw(const Panel& panel, double left) {
  Axis x(panel.log_x, left, kPanelWidth);
  Axis y(panel.log_y, kTop + kPanelHeight, -kPanelHeight);
  for (const Curve& curve : panel.curves) {
    for (const auto& [at, value] : curve.points) {
      if (!x.can_show(at) || !y.can_show(value)) continue;
      x.include(at);
      y.include(value);
    }
  }
  std::string svg = axes(panel, x, y, left);
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    std::string path;
    for (const auto& [at, value] : panel.curves[i].points) {
      if (!x.can_show(at) || !y.can_show(value)) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.place(at), y.place(value));
    }
    if (!path.empty()) svg += fmt::format("<path d=\"{}\" {}/>\n", path, style_of(i));
  }
  return svg;
}

std::string legend(const std::vector<Curve>& curves, double left) {
  std::string svg;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double y = kTop + 10 + kLegendLine * static_cast<double>(i);
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h26\" {}/>\n", left, y, style_of(i));
    svg += text_at(left + 32, y + 4, "start", curves[i].label);
  }
  return svg;
}

}  // namespace

std::string to_svg(const std::string& title, const std::vector<Panel>& panels) {
  constexpr double kLegendWidth = 240;
  const double plots = kLeft + static_cast<double>(panels.size()) * (kPanelWidth + kGap);
  const double curves = panels.empty() ? 0 : static_cast<double>(panels.front().curves.size());
  const double height = std::max(kTop + kPanelHeight + 56, kTop + kLegendLine * (curves + 1));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"24\" font-size=\"16\">{3}</text>\n",
      plots + kLegendWidth, height, kLeft, escaped(title));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    svg += draw(panels[i], kLeft + static_cast<double>(i) * (kPanelWidth + kGap));
  }
  if (!panels.empty()) svg += legend(panels.front().curves, plots - kGap / 2);
  return svg + "</svg>\n";
}

}  // namespace cohort::bench
