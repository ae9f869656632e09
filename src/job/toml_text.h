#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace cohort {

/// The one way by which text becomes TOML. Taking a tree of tables apart is recursive, so how deep
/// a text nests, by brackets and by the dots of its keys, is looked at before anything is made of
/// it. Throws Error(invalid): "<source>:<line>: this is not TOML: …".
toml::table parse_toml(std::string_view text, const std::string& source);

}  // namespace cohort
