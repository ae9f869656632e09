// Digits drawn by arithmetic. Each is a few strokes in the unit square; a *hand* (stretch, slant,
// turn, place, width of the pen, all random) maps them to pixels, lines are inked with a soft edge,
// and the picture gets noise. All random numbers of a set come from one generator of (seed, part),
// in the order of its samples.
#include "data/sources/sources.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/random.h"
#include "data/datasets.h"

namespace cohort::data {
namespace {

constexpr int kSide = 28;
constexpr double kDigitHeight = 20;  // Pixels; the rest is margin, as in MNIST.

/// x to the right, y down; a digit's box is the unit square.
struct Point {
  double x = 0;
  double y = 0;
};

/// A line through its points; a digit is one or two of them.
using Stroke = std::vector<Point>;
using DigitShape = std::vector<Stroke>;

/// A part of an ellipse in sixteenths of a turn, clockwise; 0 is right, 4 the bottom.
Stroke arc(Point centre, Point radius, int from, int to) {
  constexpr std::array<double, 16> kCosine = {
      1,  0.923880,  0.707107,  0.382683,  0, -0.382683, -0.707107, -0.923880,
      -1, -0.923880, -0.707107, -0.382683, 0, 0.382683,  0.707107,  0.923880};
  Stroke stroke;
  for (int k = from; k <= to; ++k) {
    stroke.push_back(
        {centre.x + radius.x * kCosine[k % 16], centre.y + radius.y * kCosine[(k + 12) % 16]});
  }
  return stroke;
}

Stroke joined(Stroke first, const Stroke& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// How each digit is drawn, stroke by stroke.
const std::array<DigitShape, 10>& shapes() {
  static const std::array<DigitShape, 10> digits = {
      DigitShape{arc({.50, .50}, {.26, .42}, 0, 16)},
      DigitShape{{{.35, .22}, {.54, .08}, {.54, .92}}},
      DigitShape{joined(arc({.50, .30}, {.24, .22}, 9, 18), {{.24, .92}, {.78, .92}})},
      DigitShape{arc({.47, .29}, {.22, .20}, 9, 20), arc({.47, .70}, {.25, .22}, 12, 23)},
      DigitShape{{{.62, .92}, {.62, .08}, {.22, .64}, {.80, .64}}},
      DigitShape{joined({{.74, .08}, {.34, .08}, {.30, .46}}, arc({.48, .66}, {.24, .25}, 10, 22))},
      DigitShape{joined({{.66, .10}, {.42, .36}}, arc({.50, .68}, {.22, .23}, 8, 24))},
      DigitShape{{{.24, .10}, {.76, .10}, {.44, .92}}},
      DigitShape{arc({.50, .29}, {.20, .20}, 0, 16), arc({.50, .71}, {.24, .22}, 0, 16)},
      DigitShape{joined(arc({.50, .32}, {.22, .23}, 0, 16), {{.60, .92}})},
  };
  return digits;
}

/// How one digit is written: an affine map to pixels and a pen.
struct Hand {
  double xx, xy, yx, yy;  ///< Stretch, slant and turn.
  Point centre;           ///< In pixels.
  double radius;          ///< Of the pen, in pixels.
  double shake;           ///< The farthest a point is moved, in pixels.

  explicit Hand(Random& random)
      : xx(random.uniform(0.75, 1.15)),
        xy(random.uniform(-0.30, 0.15)),
        yx(random.uniform(-0.12, 0.12)),
        yy(random.uniform(0.85, 1.10)),
        centre{kSide / 2.0 - 0.5 + random.uniform(-2, 2),
               kSide / 2.0 - 0.5 + random.uniform(-2, 2)},
        radius(random.uniform(0.8, 1.7)),
        shake(0.35) {}

  Point place(const Point& point, Random& random) const {
    const double x = (point.x - 0.5) * kDigitHeight;
    const double y = (point.y - 0.5) * kDigitHeight;
    return {centre.x + xx * x + xy * y + random.uniform(-shake, shake),
            centre.y + yx * x + yy * y + random.uniform(-shake, shake)};
  }
};

using Canvas = std::array<float, kSide * kSide>;  // 0 is the ground, 1 full ink.

/// Inks every pixel nearer than the pen's radius, with a soft edge one pixel wide.
void draw_line(Canvas& canvas, Point a, Point b, double radius) {
  const double reach = radius + 0.5;
  const auto pixel = [](double at) { return std::clamp(static_cast<int>(at), 0, kSide - 1); };
  const int left = pixel(std::min(a.x, b.x) - reach), right = pixel(std::max(a.x, b.x) + reach + 1);
  const int top = pixel(std::min(a.y, b.y) - reach), bottom = pixel(std::max(a.y, b.y) + reach + 1);
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double inverse = 1 / std::max(dx * dx + dy * dy, 1e-9);
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const double along = std::clamp(((x - a.x) * dx + (y - a.y) * dy) * inverse, 0.0, 1.0);
      const double ex = x - a.x - along * dx, ey = y - a.y - along * dy;
      const double square = ex * ex + ey * ey;
      if (square >= reach * reach) continue;
      const auto ink = static_cast<float>(std::min(reach - std::sqrt(square), 1.0));
      float& at = canvas[static_cast<std::size_t>(y * kSide + x)];
      at = std::max(at, ink);
    }
  }
}

void draw_digit(Canvas& canvas, const DigitShape& shape, Random& random) {
  const Hand hand(random);
  for (const Stroke& stroke : shape) {
    Point from = hand.place(stroke[0], random);
    for (const Point& point : std::span(stroke).subspan(1)) {
      const Point to = hand.place(point, random);
      draw_line(canvas, from, to, hand.radius);
      from = to;
    }
  }
}

/// The canvas as bytes, with noise; one random number serves eight pixels.
void develop(const Canvas& canvas, double noise, Random& random, std::uint8_t* pixels) {
  const auto ink = static_cast<float>(255 * random.uniform(0.8, 1.0));
  const auto amplitude = static_cast<float>(2 * noise);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    if (i % 8 == 0) bits = random.next();
    const float change = (static_cast<float>(bits & 255) - 127.5f) * amplitude;
    bits >>= 8;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(canvas[i] * ink + change, 0.0f, 255.0f));
  }
}

}  // namespace

// Sample i is digit i % classes: the order of samples is made random where they are taken
// (sampler.h).
std::shared_ptr<const Dataset> make_digits(const DigitOptions& options) {
  torch::Tensor pixels = torch::empty({options.samples, 1, kSide, kSide}, torch::kUInt8);
  torch::Tensor labels = torch::empty({options.samples}, torch::kInt64);
  auto* image = pixels.data_ptr<std::uint8_t>();
  auto* label = labels.data_ptr<std::int64_t>();
  Random random(options.seed, options.part);
  for (std::int64_t i = 0; i < options.samples; ++i, image += kSide * kSide) {
    label[i] = i % options.classes;
    Canvas canvas{};
    draw_digit(canvas, shapes()[static_cast<std::size_t>(label[i])], random);
    develop(canvas, options.noise, random, image);
  }
  return std::make_shared<ByteImages>(pixels, labels);
}

}  // namespace cohort::data
