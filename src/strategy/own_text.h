#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cohort {

/// Texts among the floats of TrainingState::own, a float a character: they say whose the rest is.
inline std::vector<float> floats_of_text(const std::string& text) {
  return {text.begin(), text.end()};
}

/// Nothing where the floats are no text.
inline std::optional<std::string> text_of_floats(const std::vector<float>& floats) {
  std::string text;
  for (const float value : floats) {
    if (!(value >= 0 && value < 128)) return std::nullopt;
    text += static_cast<char>(value);
  }
  return text;
}

}  // namespace cohort
