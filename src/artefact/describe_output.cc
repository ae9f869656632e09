#include "artefact/describe_output.h"

#include <algorithm>

#include "base/fail.h"

namespace cohort {

std::vector<Prediction> describe_output(const torch::Tensor& output, std::int64_t outputs,
                                        const std::vector<std::string>& class_names) {
  const torch::NoGradGuard no_grad;
  torch::Tensor rows = output.dim() == 3 ? output.select(1, output.size(1) - 1) : output;
  if (rows.dim() == 1 && outputs == 1) rows = rows.unsqueeze(1);
  if (rows.dim() != 2 || rows.size(1) != outputs) {
    fail(ErrorCode::invalid,
         "the model's output has the shape [{}], but there are {} {} to predict",
         fmt::join(output.sizes(), ", "), outputs, class_names.empty() ? "values" : "classes");
  }
  // Of the output itself, as accuracy is counted: the softmax may round two of them to one.
  const torch::Tensor best = rows.argmax(1).contiguous();
  if (!class_names.empty()) rows = torch::softmax(rows, 1);
  rows = rows.to(torch::kFloat32).contiguous();
  std::vector<Prediction> predictions(static_cast<std::size_t>(rows.size(0)));
  const float* from = rows.data_ptr<float>();
  for (std::size_t i = 0; i < predictions.size(); ++i, from += outputs) {
    Prediction& prediction = predictions[i];
    if (class_names.empty()) {
      prediction.values.assign(from, from + outputs);
      continue;
    }
    prediction.scores.assign(from, from + outputs);
    prediction.class_id = best.data_ptr<std::int64_t>()[i];
    prediction.class_name = class_names[static_cast<std::size_t>(prediction.class_id)];
  }
  return predictions;
}

}  // namespace cohort
