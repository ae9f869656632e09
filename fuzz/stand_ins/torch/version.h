#pragma once

// In the place of LibTorch's, of which the text of a checkpoint has the version and nothing else.
#define TORCH_VERSION "none"
