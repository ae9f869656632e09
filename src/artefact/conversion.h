#pragma once

#include <cohort/loaded_model.h>

#include <string>
#include <vector>

#include "data/preprocessing/preprocessing.h"
#include "tensor/data_spec.h"

namespace cohort::artefact {

/// Both ends of a model that predicts: a program's rows to the model's input, and the model's
/// output to predictions.
///
///   rows ── input_of() ──► input [rows, …] ── Model::forward ──► output ── describe_output() ──►
///
/// Pure functions of their arguments, for any thread. (Rows of files: score/row_source.h.)

/// Rows that a program has, as the input of a model, through the preprocessing of its training. A
/// row is what a line of the training data was, without the target: fields of a table; one text
/// "index:value …"; one text of `context` characters. Or it is the numbers: of a table, of a sparse
/// row with all its zeros, an image's pixels from 0 to 255, tokens. Throws Error(invalid) naming
/// the row (from 1) for one that does not fit.
torch::Tensor input_of(const data::Preprocessing& preprocessing, const tensor::DataSpec& spec,
                       const std::vector<std::vector<std::string>>& rows);
torch::Tensor input_of(const data::Preprocessing& preprocessing, const tensor::DataSpec& spec,
                       const std::vector<std::vector<double>>& rows);

/// What the output of a model says of each row of its input: the softmax over the classes, or the
/// values where `class_names` is empty. Of sequences (rows × positions × classes) the last
/// position, which says what comes next. Throws Error(invalid) where it has not as many outputs as
/// there are classes or values.
std::vector<Prediction> describe_output(const torch::Tensor& output, std::int64_t outputs,
                                        const std::vector<std::string>& class_names);

}  // namespace cohort::artefact
